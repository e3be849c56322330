// Registers on an APB port; the description lists them.
module os_csr (
    input  logic clk, rst_n,
    input  logic psel, penable, pwrite, input logic [11:0] paddr, input logic [31:0] pwdata, output logic [31:0] prdata,
    output logic start, reset_req, irq, input logic reset_done, busy, done_set, err_set, input logic [2:0] err_cause, input logic [1:0] err_queue,
    output logic [31:0] count, watchdog, output logic [os_cfg::CSR_BASE_N-1:0][31:0] base,
    input  logic [os_cfg::CSR_EPC_N-1:0][31:0] epc, input logic [os_cfg::CSR_CNT_N-1:0][31:0] cnt);
  localparam int CAUSE_W = os_cfg::CSR_ERR_CAUSE_W, QUEUE_W = os_cfg::CSR_ERR_QUEUE_W;
  logic write, done, err, irq_done, irq_err;
  logic [2:0] cause;
  logic [1:0] queue;
  logic [31:0] at;
  assign at = 32'(paddr);
  assign write = psel && penable && pwrite;
  assign irq = (done && irq_done) || (err && irq_err);
  assign start = write && at == os_cfg::CSR_CTRL && pwdata[os_cfg::CSR_CTRL_START_B] && !pwdata[os_cfg::CSR_CTRL_RESET_B]
              && !busy && !err;
  always_ff @(posedge clk)
    if (!rst_n) begin
      {done, err, irq_done, irq_err, cause, queue, reset_req} <= '0;
      {count, watchdog, base} <= '0;
    end else begin
      if (write) begin
        if (at == os_cfg::CSR_CTRL && pwdata[os_cfg::CSR_CTRL_RESET_B]) reset_req <= 1'b1;
        if (at == os_cfg::CSR_STAT && pwdata[os_cfg::CSR_STAT_DONE_B]) done <= 1'b0;
        if (at == os_cfg::CSR_COUNT) count <= pwdata;
        if (at == os_cfg::CSR_WDOG) watchdog <= pwdata;
        if (at == os_cfg::CSR_IRQ_EN) begin
          irq_done <= pwdata[os_cfg::CSR_IRQ_EN_DONE_B];
          irq_err <= pwdata[os_cfg::CSR_IRQ_EN_ERR_B];
        end
        for (int i = 0; i < os_cfg::CSR_BASE_N; i++)
          if (at == os_cfg::CSR_BASE + 4*i) base[i] <= pwdata;
      end
      if (start) done <= 1'b0;
      if (done_set) done <= 1'b1;
      if (err_set) {err, cause, queue} <= {1'b1, err_cause, err_queue};
      if (reset_done) {reset_req, done, err, cause, queue} <= '0;
    end
  always_comb begin
    prdata = '0;
    case (at)
      os_cfg::CSR_ID:     prdata = os_cfg::ARCH_HASH[31:0];
      os_cfg::CSR_ID + 4: prdata = os_cfg::ARCH_HASH[63:32];
      os_cfg::CSR_STAT: begin
        prdata[os_cfg::CSR_STAT_BUSY_B] = busy;
        prdata[os_cfg::CSR_STAT_DONE_B] = done;
        prdata[os_cfg::CSR_STAT_ERR_B] = err;
      end
      os_cfg::CSR_COUNT:  prdata = count;
      os_cfg::CSR_WDOG:   prdata = watchdog;
      os_cfg::CSR_IRQ_EN: begin
        prdata[os_cfg::CSR_IRQ_EN_DONE_B] = irq_done;
        prdata[os_cfg::CSR_IRQ_EN_ERR_B] = irq_err;
      end
      os_cfg::CSR_ERR: begin
        prdata[os_cfg::CSR_ERR_CAUSE_B +: CAUSE_W] = CAUSE_W'(cause);
        prdata[os_cfg::CSR_ERR_QUEUE_B +: QUEUE_W] = QUEUE_W'(queue);
      end
      default: ;
    endcase
    for (int i = 0; i < os_cfg::CSR_BASE_N; i++) if (at == os_cfg::CSR_BASE + 4*i) prdata = base[i];
    for (int i = 0; i < os_cfg::CSR_EPC_N; i++) if (at == os_cfg::CSR_EPC + 4*i) prdata = epc[i];
    for (int i = 0; i < os_cfg::CSR_CNT_N; i++) if (at == os_cfg::CSR_CNT + 4*i) prdata = cnt[i];
  end
endmodule
