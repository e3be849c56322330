// nx16: the accelerator with its registers (APB) and its AXI4 master.
module nx_top (
    input  logic clk, rst_n, output logic irq,
    input  logic psel, penable, pwrite, input logic [11:0] paddr, input logic [31:0] pwdata, output logic [31:0] prdata,
    output logic pready, pslverr,
    output logic arvalid, input logic arready, output logic arid, output logic [39:0] araddr, output logic [7:0] arlen,
    output logic [2:0] arsize, output logic [1:0] arburst,
    input  logic rvalid, output logic rready, input logic rid, input logic [nx_cfg::AXI_B*8-1:0] rdata, input logic rlast,
    input  logic [1:0] rresp,
    output logic awvalid, input logic awready, output logic awid, output logic [39:0] awaddr, output logic [7:0] awlen,
    output logic [2:0] awsize, output logic [1:0] awburst,
    output logic wvalid, input logic wready, output logic [nx_cfg::AXI_B*8-1:0] wdata, output logic [nx_cfg::AXI_B-1:0] wstrb,
    output logic wlast,
    input  logic bvalid, output logic bready, input logic bid, input logic [1:0] bresp,
    input  logic [3:0] tb_stall);      // holds ld, mac, vec, st for a cycle; tie to 0 outside a test bench
  logic start, reset_req, soft_reset, done, err, bus_idle, rst, busy;
  logic [2:0] err_cause, err_queue;
  logic [31:0] count, watchdog;
  logic [nx_cfg::CSR_SEG_N-1:0][39:0] seg;
  logic [nx_cfg::CSR_EPC_N-1:0][31:0] epc;
  logic [nx_cfg::CSR_CNT_N-1:0][31:0] cnt;
  assign arsize = 3'($clog2(nx_cfg::AXI_B));
  assign awsize = 3'($clog2(nx_cfg::AXI_B));
  assign arburst = 2'b01;
  assign awburst = 2'b01;
  assign awid = 1'b0;
  logic unused;
  assign unused = &{1'b0, bid};
  // CTRL.reset waits until nothing is open on the bus
  assign soft_reset = reset_req && bus_idle;
  assign rst = !rst_n || soft_reset;
  always_ff @(posedge clk)
    if (rst) busy <= 1'b0;
    else if (start) busy <= 1'b1;
    else if (done || err) busy <= 1'b0;
  nx_csr csr (.clk, .rst_n, .psel, .penable, .pwrite, .paddr, .pwdata, .prdata, .pready, .pslverr, .start, .reset_req,
      .reset_done(soft_reset), .busy(busy || reset_req), .done_set(done), .err_set(err), .err_cause, .err_queue, .count, .watchdog,
      .seg, .epc, .cnt, .irq);
  nx_core core (.clk, .rst, .start, .drain(reset_req), .count, .watchdog, .seg, .done, .err, .bus_idle, .err_cause, .err_queue,
      .epc, .cnt, .tb_stall, .arvalid, .arready, .arid, .araddr, .arlen, .rvalid, .rready, .rid, .rdata, .rlast, .rresp,
      .awvalid, .awready, .awaddr, .awlen, .wvalid, .wready, .wdata, .wstrb, .wlast, .bvalid, .bready, .bresp);
endmodule
