// os8: the accelerator with its registers (APB) and its AXI4 master.
module os_top (
    input  logic clk, rst_n, output logic irq,
    input  logic psel, penable, pwrite, input logic [11:0] paddr, input logic [31:0] pwdata, output logic [31:0] prdata,
    output logic pready, pslverr,
    output logic arvalid, input logic arready, output logic arid, output logic [39:0] araddr, output logic [7:0] arlen,
    output logic [2:0] arsize, output logic [1:0] arburst,
    input  logic rvalid, output logic rready, input logic rid, input logic [os_cfg::C*8-1:0] rdata, input logic rlast,
    input  logic [1:0] rresp,
    output logic awvalid, input logic awready, output logic awid, output logic [39:0] awaddr, output logic [7:0] awlen,
    output logic [2:0] awsize, output logic [1:0] awburst,
    output logic wvalid, input logic wready, output logic [os_cfg::C*8-1:0] wdata, output logic [os_cfg::C-1:0] wstrb,
    output logic wlast,
    input  logic bvalid, output logic bready, input logic bid, input logic [1:0] bresp,
    input  logic [os_cfg::NQ-1:0] tb_stall);               // holds an engine for a cycle; tie to 0 outside a test bench
  logic start, reset_req, soft_reset, done, err, bus_idle, rst, busy;
  logic [2:0] err_cause;
  logic [1:0] err_queue;
  logic [31:0] count, watchdog;
  logic [os_cfg::CSR_BASE_N-1:0][31:0] base;
  logic [os_cfg::CSR_EPC_N-1:0][31:0] epc;
  logic [os_cfg::CSR_CNT_N-1:0][31:0] cnt;
  assign {pready, pslverr} = 2'b10;
  assign {arsize, awsize} = {2{3'($clog2(os_cfg::C))}};
  assign {arburst, awburst, awid} = 5'b01_01_0;
  logic unused;
  assign unused = &{1'b0, bid};
  // CTRL.reset waits until nothing is open on the bus
  assign soft_reset = reset_req && bus_idle;
  assign rst = !rst_n || soft_reset;
  always_ff @(posedge clk)
    if (rst) busy <= 1'b0;
    else if (start) busy <= 1'b1;
    else if (done || err) busy <= 1'b0;
  os_csr csr (.clk, .rst_n, .psel, .penable, .pwrite, .paddr, .pwdata, .prdata, .start, .reset_req, .irq,
      .reset_done(soft_reset), .busy(busy || reset_req), .done_set(done), .err_set(err), .err_cause, .err_queue, .count,
      .watchdog, .base, .epc, .cnt);
  os_core core (.clk, .rst, .start, .drain(reset_req), .count, .watchdog, .base, .done, .err, .bus_idle, .err_cause,
      .err_queue, .epc, .cnt, .tb_stall, .arvalid, .arready, .arid, .araddr, .arlen, .rvalid, .rready, .rid, .rdata, .rlast,
      .rresp, .awvalid, .awready, .awaddr, .awlen, .wvalid, .wready, .wdata, .wstrb, .wlast, .bvalid, .bready, .bresp);
endmodule
