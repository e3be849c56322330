// st: a request stage walks the rows and announces bursts, a data stage reads `out` and feeds them; an instruction
// retires when every one of its bursts has been answered. `end` retires when nothing else is left.
module nx_st (
    input  logic clk, rst, halt, stall, look, input logic [nx_cfg::WORD-1:0] head, input logic others_idle,
    output logic ready, output logic [2:0] bad, input logic start, output logic retire, ended,
    output logic [2:0] seg, input logic [39:0] seg_base,
    output logic req_v, output logic [39:0] req_addr, output logic [7:0] req_len, input logic req_ack,
    output logic d_v, output logic [nx_cfg::AXI_B*8-1:0] d, input logic d_ack, input logic b_done,
    output logic re, output logic [13:0] ra, input logic [nx_cfg::C*8-1:0] rd, output logic busy);
  localparam int B = nx_cfg::AXI_B;
  localparam int LB = $clog2(B);
  logic [31:0] h_off;
  logic [13:0] h_sp;
  logic [8:0] h_nx;
  logic [12:0] h_ny, h_nz;
  logic [23:0] h_sy, h_sz;
  logic is_end;
  assign is_end = 32'(head[nx_cfg::OP_L +: nx_cfg::OP_W]) == nx_cfg::OP_END;
  always_ff @(posedge clk)
    if (look) begin
      seg <= head[nx_cfg::ST_SEG_L +: nx_cfg::ST_SEG_W];
      h_off <= head[nx_cfg::ST_OFF_L +: nx_cfg::ST_OFF_W];
      h_sp <= head[nx_cfg::ST_SP_L +: nx_cfg::ST_SP_W];
      h_nx <= 9'(head[nx_cfg::ST_NX_L +: nx_cfg::ST_NX_W]) + 9'(nx_cfg::ST_NX_P);
      h_ny <= 13'(head[nx_cfg::ST_NY_L +: nx_cfg::ST_NY_W]) + 13'(nx_cfg::ST_NY_P);
      h_nz <= 13'(head[nx_cfg::ST_NZ_L +: nx_cfg::ST_NZ_W]) + 13'(nx_cfg::ST_NZ_P);
      h_sy <= head[nx_cfg::ST_SY_L +: nx_cfg::ST_SY_W];
      h_sz <= head[nx_cfg::ST_SZ_L +: nx_cfg::ST_SZ_W];
    end
  logic unused;
  assign unused = &{1'b0, head};
  // ---- check
  logic [25:0] rows;
  logic [34:0] words;
  always_ff @(posedge clk)
    if (look) begin
      rows <= 26'(h_nz)*26'(h_ny);
      words <= 35'(rows)*35'(h_nx);
    end
  assign bad = is_end ? '0 : (h_off & 32'(B - 1)) != '0 ? 3'(nx_cfg::FAULT_ILLEGAL)
             : 36'(words) + 36'(h_sp) > 36'(nx_cfg::OUT_W) ? 3'(nx_cfg::FAULT_OOB) : '0;
  // ---- request stage
  logic r_busy, row_last, r_end, t_empty, t_full, b_empty, b_full;
  logic [12:0] r_ny, r_nz, r_y, r_z;
  logic [8:0] r_nx, left, beats;
  logic [39:0] row, plane, step_y, step_z, addr;
  logic [15:0] bursts, answered, b_q;
  nx_split split (.addr, .left, .beats);
  assign ready = is_end ? others_idle && !busy : !r_busy && !t_full && !b_full;
  assign req_v = r_busy && !halt;
  assign req_addr = addr;
  assign req_len = 8'(beats - 1'b1);
  assign row_last = req_ack && beats == left;
  assign r_end = row_last && r_y + 1'b1 == r_ny && r_z + 1'b1 == r_nz;
  always_ff @(posedge clk)
    if (rst) begin
      r_busy <= 1'b0;
      bursts <= '0;
    end else if (start && !is_end) begin
      r_busy <= 1'b1;
      r_nx <= h_nx;
      r_ny <= h_ny;
      r_nz <= h_nz;
      r_y <= '0;
      r_z <= '0;
      bursts <= '0;
      row <= seg_base + 40'(h_off);
      plane <= seg_base + 40'(h_off);
      addr <= seg_base + 40'(h_off);
      left <= h_nx;
      step_y <= 40'(signed'(h_sy)) << LB;
      step_z <= 40'(signed'(h_sz)) << LB;
    end else if (req_ack) begin
      bursts <= bursts + 1'b1;
      addr <= addr + (40'(beats) << LB);
      left <= left - beats;
      if (row_last) begin
        left <= r_nx;
        r_y <= r_y + 1'b1;
        row <= row + step_y;
        addr <= row + step_y;
        if (r_y + 1'b1 == r_ny) begin
          r_y <= '0;
          r_z <= r_z + 1'b1;
          row <= plane + step_z;
          addr <= plane + step_z;
          plane <= plane + step_z;
          if (r_z + 1'b1 == r_nz) r_busy <= 1'b0;
        end
      end
    end
  // ---- data stage: reads only when the word has a place to go
  logic [13:0] t_sp;
  logic [14:0] t_words, at;
  logic got, f_empty, t_end;
  logic [2:0] held;                    // words in the FIFO or on their way into it
  logic unused_full;
  dlc_fifo #(.D(nx_cfg::ISSUE_IN_FLIGHT), .W(29)) pending (.clk, .rst, .push(start && !is_end), .d({h_sp, words[14:0]}), .pop(t_end),
      .q({t_sp, t_words}), .empty(t_empty), .full(t_full));
  dlc_fifo #(.D(4), .W(B*8)) words_out (.clk, .rst, .push(got), .d(rd), .pop(d_ack), .q(d), .empty(f_empty), .full(unused_full));
  assign re = !t_empty && !halt && !stall && held != 3'd4;
  assign ra = t_sp + at[13:0];
  assign t_end = re && at + 1'b1 == t_words;
  assign d_v = !f_empty;
  always_ff @(posedge clk)
    if (rst) begin
      at <= '0;
      got <= 1'b0;
      held <= '0;
    end else begin
      got <= re;
      held <= held + 3'(re) - 3'(d_ack);
      if (re) at <= t_end ? '0 : at + 1'b1;
    end
  // ---- answers
  logic answer_all, end_retire;
  dlc_fifo #(.D(nx_cfg::ISSUE_IN_FLIGHT), .W(16)) expect_b (.clk, .rst, .push(r_end), .d(bursts + 1'b1), .pop(answer_all), .q(b_q), .empty(b_empty),
      .full(b_full));
  assign answer_all = !b_empty && answered >= b_q && !halt;
  assign retire = answer_all || end_retire;
  assign ended = end_retire;
  assign busy = r_busy || !t_empty || !f_empty || got || !b_empty;
  always_ff @(posedge clk)
    if (rst) begin
      answered <= '0;
      end_retire <= 1'b0;
    end else begin
      end_retire <= start && is_end;
      answered <= answered + 16'(b_done) - (answer_all ? b_q : '0);
    end
endmodule
