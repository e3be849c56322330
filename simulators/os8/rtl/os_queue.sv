// One in-order queue. While its engine is free the engine looks at the head for ISSUE_LOOK cycles; the head starts when its
// tokens are there, and is the only one of the queue that runs.
module os_queue (
    input  logic clk, rst, halt,
    input  logic push, input logic [os_cfg::WORD-1:0] push_insn, input logic [31:0] push_index, output logic full,
    output logic look, output logic [os_cfg::WORD-1:0] head,
    output logic [os_cfg::NQ-1:0] pop, input logic tokens_ok,
    input  logic ready, input logic [2:0] bad, output logic start,
    input  logic retire, output logic [os_cfg::NQ-1:0] give, output logic [31:0] running,
    output logic idle, waiting, output logic [31:0] epc, output logic [2:0] fault, input logic [31:0] next_index);
  localparam int W = os_cfg::WORD, LOOK = os_cfg::ISSUE_LOOK, L = $clog2(LOOK + 1);
  logic empty, run, settled;
  logic [L-1:0] age;
  logic [31:0] head_index;
  logic [os_cfg::NQ-1:0] run_push;
  dlc_fifo #(.D(os_cfg::QD), .W(W + 32)) waiting_ones (.clk, .rst, .push, .d({push_index, push_insn}), .pop(start),
      .q({head_index, head}), .empty, .full);
  assign look = !empty && !run && age != L'(LOOK);
  assign settled = !empty && !run && age == L'(LOOK) && ready && !halt;
  assign pop = settled ? head[os_cfg::POP_L +: os_cfg::POP_W] : '0;
  assign waiting = settled && !tokens_ok;
  assign start = settled && tokens_ok && bad == '0;
  assign fault = settled && tokens_ok ? bad : '0;
  assign give = retire ? run_push : '0;
  assign idle = empty && !run;
  assign epc = run ? running : !empty ? head_index : next_index;
  always_ff @(posedge clk)
    if (rst) begin
      run <= 1'b0;
      age <= '0;
    end else begin
      age <= look ? age + 1'b1 : start ? '0 : age;
      if (start) begin
        run <= 1'b1;
        running <= head_index;
        run_push <= head[os_cfg::PUSH_L +: os_cfg::PUSH_W];
      end else if (retire) run <= 1'b0;
    end
`ifndef SYNTHESIS
  if (LOOK < 2) $error("the engines check an instruction in two cycles");
  if (os_cfg::ISSUE_IN_FLIGHT != 1) $error("one instruction of a queue runs");
  always_ff @(posedge clk) if (!rst) a_retire: assert (!retire || run);
`endif
endmodule
