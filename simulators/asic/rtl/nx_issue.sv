// One in-order queue: waits for the head's semaphores, starts it on the engine, retires in order.
//
// The engine looks at the head for ISSUE_LOOK cycles (`look`) and then says whether it is `bad`; up to ISSUE_IN_FLIGHT
// instructions may be in flight, so that an engine with a request and a data stage overlaps them.
module nx_issue (
    input  logic clk, rst, halt,
    input  logic push, input logic [nx_cfg::WORD-1:0] push_insn, input logic [31:0] push_index, output logic full,
    output logic head_v, look, output logic [nx_cfg::WORD-1:0] head,
    output logic [nx_cfg::NSEM-1:0] wai, input logic sems_ok, sem_conflict,
    input  logic ready, input logic [2:0] bad, output logic start,
    input  logic retire, output logic [nx_cfg::NSEM-1:0] give, output logic [31:0] retire_index,
    output logic idle, waiting, output logic [31:0] epc, output logic [2:0] fault, input logic [31:0] next_index);
  localparam int W = nx_cfg::WORD;
  localparam int S = nx_cfg::NSEM;
  localparam int LOOK = nx_cfg::ISSUE_LOOK, L = $clog2(LOOK + 1);
  logic [W+31:0] q;
  logic q_empty, f_empty, f_full;
  logic [L-1:0] age;
  logic [S+31:0] f_q;
  logic settled, go;
  dlc_fifo #(.D(nx_cfg::QD), .W(W + 32)) queue (.clk, .rst, .push, .d({push_index, push_insn}), .pop(start), .q,
      .empty(q_empty), .full);
  dlc_fifo #(.D(nx_cfg::ISSUE_IN_FLIGHT), .W(S + 32)) inflight (.clk, .rst, .push(start), .d({q[W +: 32], head[nx_cfg::SIG_L +: S]}),
      .pop(retire), .q(f_q), .empty(f_empty), .full(f_full));
  assign head_v = !q_empty;
  assign head = q[W-1:0];
  assign look = head_v && age != L'(LOOK);
  assign settled = head_v && age == L'(LOOK);
  assign wai = settled ? head[nx_cfg::WAI_L +: S] : '0;
  assign go = settled && ready && !f_full && !halt;
  assign waiting = go && !sems_ok;
  assign start = go && sems_ok && !sem_conflict && bad == '0;
  assign fault = !go ? '0 : sem_conflict ? 3'(nx_cfg::FAULT_SEM) : sems_ok ? bad : '0;
  assign give = retire ? f_q[S-1:0] : '0;
  assign retire_index = f_q[S +: 32];
  assign idle = q_empty && f_empty;
  assign epc = !f_empty ? f_q[S +: 32] : head_v ? q[W +: 32] : next_index;
  always_ff @(posedge clk)
    if (rst || start || !head_v) age <= '0;
    else if (age != L'(LOOK)) age <= age + 1'b1;
`ifndef SYNTHESIS
  if (LOOK < 3) $error("the engines check an instruction in three cycles");
  always_ff @(posedge clk) if (!rst) a_retire: assert (!(retire && f_empty));
`endif
endmodule
