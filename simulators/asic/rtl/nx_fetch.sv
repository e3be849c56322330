// Reads the program from segment `code`, up to ISSUE_AHEAD instructions ahead, checks opcode and reserved bits and puts each
// instruction into its queue; stops after `end`.
module nx_fetch (
    input  logic clk, rst, halt, start, input logic [31:0] count, input logic [39:0] base,
    output logic req_v, output logic [39:0] req_addr, output logic [7:0] req_len, input logic req_ack,
    input  logic beat_v, input logic [nx_cfg::AXI_B*8-1:0] beat,
    output logic [3:0] push, output logic [nx_cfg::WORD-1:0] insn, output logic [31:0] index, input logic [3:0] full,
    output logic ended, illegal);       // ended: `end` is in its queue and nothing fetched beyond it is left
  localparam int W = nx_cfg::WORD;
  localparam int DW = nx_cfg::AXI_B*8;
  localparam int BEATS = W/DW;
  localparam int AHEAD = nx_cfg::ISSUE_AHEAD, N = $clog2(AHEAD + 1);
  logic run, stopped, last_beat, q_empty, known, clean, take, drop;
  logic [31:0] asked;
  logic [N-1:0] ahead;
  logic [3:0] at, op;
  logic [W-1:0] part, used;
  logic [W-1:0] joined;                // the last beats, the newest on top
  logic [1:0] q;
  logic unused_full;                   // `ahead` keeps a place for every instruction asked for
  assign joined = (part >> DW) | (W'(beat) << (W - DW));
  assign last_beat = at == 4'(BEATS - 1);
  dlc_fifo #(.D(AHEAD), .W(W)) buffer (.clk, .rst, .push(beat_v && last_beat), .d(joined), .pop(take || drop), .q(insn),
      .empty(q_empty), .full(unused_full));
  assign req_v = run && asked != count && ahead != N'(AHEAD) && !halt;
  assign req_addr = base + (40'(asked) << $clog2(W/8));
  assign req_len = 8'(BEATS - 1);
  assign op = insn[nx_cfg::OP_L +: nx_cfg::OP_W];
  always_comb begin
    known = 1'b1;
    q = 2'(nx_cfg::Q_ST);
    used = '0;
    case (32'(op))
      nx_cfg::OP_LD:   begin q = 2'(nx_cfg::Q_LD);  used = nx_cfg::LD_USED; end
      nx_cfg::OP_MAC:  begin q = 2'(nx_cfg::Q_MAC); used = nx_cfg::MAC_USED; end
      nx_cfg::OP_VEC:  begin q = 2'(nx_cfg::Q_VEC); used = nx_cfg::VEC_USED; end
      nx_cfg::OP_VEC2: begin q = 2'(nx_cfg::Q_VEC); used = nx_cfg::VEC2_USED; end
      nx_cfg::OP_ROW:  begin q = 2'(nx_cfg::Q_VEC); used = nx_cfg::ROW_USED; end
      nx_cfg::OP_NORM: begin q = 2'(nx_cfg::Q_VEC); used = nx_cfg::NORM_USED; end
      nx_cfg::OP_ST:   used = nx_cfg::ST_USED;
      nx_cfg::OP_END:  used = nx_cfg::END_USED;
      default: known = 1'b0;
    endcase
  end
  assign clean = known && (insn & ~used) == '0;
  assign take = run && !q_empty && clean && !full[q] && !halt;
  assign drop = stopped && !q_empty;
  assign ended = stopped && ahead == '0;
  assign push = take ? 4'b1 << q : '0;
  // a bad instruction, or a program that runs out without `end`
  assign illegal = run && !halt && (q_empty ? index == count : !clean);
  always_ff @(posedge clk)
    if (rst) begin
      run <= 1'b0;
      stopped <= 1'b0;
      asked <= '0;
      index <= '0;
      ahead <= '0;
      at <= '0;
      part <= '0;
    end else begin
      if (start) begin
        run <= 1'b1;
        stopped <= 1'b0;
        asked <= '0;
        index <= '0;
      end
      if (req_ack) asked <= asked + 1'b1;
      ahead <= ahead + N'(req_ack) - N'(take || drop);
      if (beat_v) begin
        part <= joined;
        at <= last_beat ? '0 : at + 1'b1;
      end
      if (take) begin
        index <= index + 1'b1;
        if (32'(op) == nx_cfg::OP_END) begin
          stopped <= 1'b1;
          run <= 1'b0;
        end
      end
    end
endmodule
