// Registers on an APB port; docs/accelerator.md lists them.
module nx_csr (
    input  logic clk, rst_n,
    input  logic psel, penable, pwrite, input logic [11:0] paddr, input logic [31:0] pwdata, output logic [31:0] prdata,
    output logic pready, pslverr,
    output logic start, reset_req, input logic reset_done, busy, done_set, err_set, input logic [2:0] err_cause, err_queue,
    output logic [31:0] count, watchdog, output logic [nx_cfg::CSR_SEG_N-1:0][39:0] seg,
    input  logic [nx_cfg::CSR_EPC_N-1:0][31:0] epc, input logic [nx_cfg::CSR_CNT_N-1:0][31:0] cnt, output logic irq);
  localparam int CAUSE_W = nx_cfg::CSR_ERR_CAUSE_W, QUEUE_W = nx_cfg::CSR_ERR_QUEUE_W;
  logic write, done, err, irq_done, irq_err;
  logic [2:0] cause, queue;
  logic [31:0] at;
  logic [nx_cfg::CSR_SEG_N-1:0][63:0] segs;
  assign write = psel && penable && pwrite;
  assign at = 32'(paddr);
  assign pready = 1'b1;
  assign pslverr = 1'b0;
  assign irq = (done && irq_done) || (err && irq_err);
  assign start = write && at == nx_cfg::CSR_CTRL && pwdata[nx_cfg::CSR_CTRL_START_B] && !pwdata[nx_cfg::CSR_CTRL_RESET_B] &&
                 !busy && !err;
  for (genvar i = 0; i < nx_cfg::CSR_SEG_N; i++) begin : g
    assign seg[i] = segs[i][39:0];
  end
  logic unused;
  assign unused = &{1'b0, segs};
  always_ff @(posedge clk)
    if (!rst_n) begin
      done <= 1'b0;
      err <= 1'b0;
      irq_done <= 1'b0;
      irq_err <= 1'b0;
      cause <= '0;
      queue <= '0;
      count <= '0;
      watchdog <= '0;
      segs <= '0;
      reset_req <= 1'b0;
    end else begin
      if (write) begin
        if (at == nx_cfg::CSR_CTRL && pwdata[nx_cfg::CSR_CTRL_RESET_B]) reset_req <= 1'b1;
        if (at == nx_cfg::CSR_STAT && pwdata[nx_cfg::CSR_STAT_DONE_B]) done <= 1'b0;
        if (at == nx_cfg::CSR_COUNT) count <= pwdata;
        if (at == nx_cfg::CSR_WDOG) watchdog <= pwdata;
        if (at == nx_cfg::CSR_IRQ_EN) begin
          irq_done <= pwdata[nx_cfg::CSR_IRQ_EN_DONE_B];
          irq_err <= pwdata[nx_cfg::CSR_IRQ_EN_ERR_B];
        end
        for (int i = 0; i < nx_cfg::CSR_SEG_N; i++) begin
          if (at == nx_cfg::CSR_SEG + 8*i) segs[i][31:0] <= pwdata;
          if (at == nx_cfg::CSR_SEG + 8*i + 4) segs[i][63:32] <= pwdata;
        end
      end
      if (start) done <= 1'b0;
      if (done_set) done <= 1'b1;
      if (err_set) begin
        err <= 1'b1;
        cause <= err_cause;
        queue <= err_queue;
      end
      if (reset_done) begin
        reset_req <= 1'b0;
        done <= 1'b0;
        err <= 1'b0;
        cause <= '0;
        queue <= '0;
      end
    end
  always_comb begin
    prdata = '0;
    if (psel) begin
      if (at == nx_cfg::CSR_ID) prdata = nx_cfg::ARCH_HASH[31:0];
      if (at == nx_cfg::CSR_ID + 4) prdata = nx_cfg::ARCH_HASH[63:32];
      if (at == nx_cfg::CSR_STAT) begin
        prdata[nx_cfg::CSR_STAT_BUSY_B] = busy;
        prdata[nx_cfg::CSR_STAT_DONE_B] = done;
        prdata[nx_cfg::CSR_STAT_ERR_B] = err;
      end
      if (at == nx_cfg::CSR_COUNT) prdata = count;
      if (at == nx_cfg::CSR_WDOG) prdata = watchdog;
      if (at == nx_cfg::CSR_IRQ_EN) begin
        prdata[nx_cfg::CSR_IRQ_EN_DONE_B] = irq_done;
        prdata[nx_cfg::CSR_IRQ_EN_ERR_B] = irq_err;
      end
      if (at == nx_cfg::CSR_ERR) begin
        prdata[nx_cfg::CSR_ERR_CAUSE_B +: CAUSE_W] = CAUSE_W'(cause);
        prdata[nx_cfg::CSR_ERR_QUEUE_B +: QUEUE_W] = QUEUE_W'(queue);
      end
      for (int i = 0; i < nx_cfg::CSR_SEG_N; i++) begin
        if (at == nx_cfg::CSR_SEG + 8*i) prdata = segs[i][31:0];
        if (at == nx_cfg::CSR_SEG + 8*i + 4) prdata = segs[i][63:32];
      end
      for (int i = 0; i < nx_cfg::CSR_EPC_N; i++)
        if (at == nx_cfg::CSR_EPC + 4*i) prdata = epc[i];
      for (int i = 0; i < nx_cfg::CSR_CNT_N; i++)
        if (at == nx_cfg::CSR_CNT + 4*i) prdata = cnt[i];
    end
  end
endmodule
