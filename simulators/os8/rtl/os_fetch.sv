// Reads the program, ISSUE_AHEAD instructions ahead at most, and puts each instruction into its queue; stops behind `end`.
module os_fetch (
    input  logic clk, rst, halt, start, input logic [31:0] count, base,
    output logic req_v, output logic [31:0] req_addr, output logic [7:0] req_beats, input logic req_ack,
    input  logic beat_v, input logic [os_cfg::C*8-1:0] beat,
    output logic [os_cfg::NQ-1:0] push, output logic [os_cfg::WORD-1:0] insn, output logic [31:0] index,
    input  logic [os_cfg::NQ-1:0] full, output logic ended, illegal);
  localparam int W = os_cfg::WORD, BEAT = os_cfg::C*8, AHEAD = os_cfg::ISSUE_AHEAD*W/BEAT;   // beats
  localparam int LB = $clog2(W/BEAT), N = $clog2(AHEAD + 1);
  logic run, over, half, empty, legal, take, drop, unused_full;
  logic [BEAT-1:0] low;
  logic [32+LB-1:0] left;                    // beats that were not asked for
  logic [N-1:0] held;                        // beats in the buffer or on their way into it
  logic [7:0] ask;
  logic [W-1:0] used;
  logic [1:0] q;
  os_burst burst (.addr(req_addr), .left(ask), .beats(req_beats));
  dlc_fifo #(.D(os_cfg::ISSUE_AHEAD), .W(W)) buffer (.clk, .rst, .push(beat_v && half), .d({beat, low}), .pop(take || drop), .q(insn),
      .empty, .full(unused_full));
  assign ask = left > 16 ? 8'd16 : left[7:0];
  assign req_v = run && !halt && left != '0 && held <= N'(AHEAD - 16);
  always_comb begin
    legal = 1'b1;
    q = 2'(os_cfg::Q_EXEC);
    case (32'(insn[os_cfg::OP_L +: os_cfg::OP_W]))
      os_cfg::OP_LOAD:  begin q = 2'(os_cfg::Q_LOAD); used = os_cfg::LOAD_USED; end
      os_cfg::OP_CONV:  used = os_cfg::CONV_USED;
      os_cfg::OP_DW:    used = os_cfg::DW_USED;
      os_cfg::OP_POOL:  used = os_cfg::POOL_USED;
      os_cfg::OP_ADD:   used = os_cfg::ADD_USED;
      os_cfg::OP_STORE: begin q = 2'(os_cfg::Q_STORE); used = os_cfg::STORE_USED; end
      os_cfg::OP_END:   begin q = 2'(os_cfg::Q_STORE); used = os_cfg::END_USED; end
      default:          begin legal = 1'b0; used = '0; end
    endcase
    if ((insn & ~used) != '0) legal = 1'b0;
  end
  assign take = run && !halt && !empty && legal && !full[q];
  assign drop = over && !empty;
  assign push = take ? os_cfg::NQ'(1) << q : '0;
  assign ended = over && held == '0;
  assign illegal = run && !halt && (empty ? index == count : !legal);   // or the program ran out without `end`
  always_ff @(posedge clk)
    if (rst) begin
      run <= 1'b0;
      over <= 1'b0;
      half <= 1'b0;
      held <= '0;
      left <= '0;
      index <= '0;
    end else begin
      held <= held + (req_ack ? N'(req_beats) : '0) - (take || drop ? N'(W/BEAT) : '0);
      if (beat_v) begin
        half <= !half;
        low <= beat;
      end
      if (req_ack) begin
        left <= left - (32+LB)'(req_beats);
        req_addr <= req_addr + 32'(req_beats)*(BEAT/8);
      end
      if (take) begin
        index <= index + 1'b1;
        if (32'(insn[os_cfg::OP_L +: os_cfg::OP_W]) == os_cfg::OP_END) begin
          run <= 1'b0;
          over <= 1'b1;
        end
      end
      if (start) begin
        run <= 1'b1;
        over <= 1'b0;
        index <= '0;
        left <= {count, LB'(0)};
        req_addr <= base;
      end
    end
endmodule
