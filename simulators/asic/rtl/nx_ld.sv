// ld: a request stage walks the rows and asks for what lies inside the source; a data stage walks the same words and
// writes read beats and fill words. The request stage may run ahead by several instructions.
module nx_ld (
    input  logic clk, rst, halt, stall, look, input logic [nx_cfg::WORD-1:0] head,
    output logic ready, output logic [2:0] bad, input logic start, output logic retire,
    output logic [2:0] seg, input logic [39:0] seg_base,        // of the instruction at the head
    output logic req_v, output logic [39:0] req_addr, output logic [7:0] req_len, input logic req_ack,
    input  logic beat_v, input logic [nx_cfg::AXI_B*8-1:0] beat, output logic beat_ready,
    output logic we, output logic [2:0] to, output logic [13:0] wa, output logic [nx_cfg::R*8-1:0] wd, output logic busy);
  localparam int B = nx_cfg::AXI_B;
  localparam int LB = $clog2(B);
  // ---- fields of the head
  logic [2:0] h_to;
  logic [31:0] h_off;
  logic [13:0] h_sp;
  logic [8:0] h_nx, h_lo, h_hi;
  logic [12:0] h_ny, h_nz;
  logic [23:0] h_sy, h_sz;
  logic signed [7:0] h_y0, h_x0;
  logic [11:0] h_y1, h_x1;
  logic [7:0] h_fill;
  always_ff @(posedge clk)
    if (look) begin
      h_to <= head[nx_cfg::LD_TO_L +: nx_cfg::LD_TO_W];
      seg <= head[nx_cfg::LD_SEG_L +: nx_cfg::LD_SEG_W];
      h_off <= head[nx_cfg::LD_OFF_L +: nx_cfg::LD_OFF_W];
      h_sp <= head[nx_cfg::LD_SP_L +: nx_cfg::LD_SP_W];
      h_nx <= 9'(head[nx_cfg::LD_NX_L +: nx_cfg::LD_NX_W]) + 9'(nx_cfg::LD_NX_P);
      h_ny <= 13'(head[nx_cfg::LD_NY_L +: nx_cfg::LD_NY_W]) + 13'(nx_cfg::LD_NY_P);
      h_nz <= 13'(head[nx_cfg::LD_NZ_L +: nx_cfg::LD_NZ_W]) + 13'(nx_cfg::LD_NZ_P);
      h_sy <= head[nx_cfg::LD_SY_L +: nx_cfg::LD_SY_W];
      h_sz <= head[nx_cfg::LD_SZ_L +: nx_cfg::LD_SZ_W];
      h_y0 <= head[nx_cfg::LD_Y0_L +: nx_cfg::LD_Y0_W];
      h_x0 <= head[nx_cfg::LD_X0_L +: nx_cfg::LD_X0_W];
      h_y1 <= head[nx_cfg::LD_Y1_L +: nx_cfg::LD_Y1_W];
      h_x1 <= head[nx_cfg::LD_X1_L +: nx_cfg::LD_X1_W];
      h_fill <= head[nx_cfg::LD_FILL_L +: nx_cfg::LD_FILL_W];
    end
  logic unused;
  assign unused = &{1'b0, head};
  // ---- words [lo, hi) of a row lie inside the source
  logic signed [13:0] last_x;
  assign last_x = $signed({2'b0, h_x1}) - 14'(h_x0);
  assign h_lo = h_x0 < 0 ? 9'd0 - 9'(h_x0) : '0;
  assign h_hi = last_x <= 0 ? '0 : last_x < 14'(h_nx) ? 9'(last_x) : h_nx;
  // ---- check
  logic [25:0] rows;
  logic [34:0] words;
  logic [39:0] first;
  logic [14:0] limit;
  always_comb
    case (32'(h_to))
      nx_cfg::LD_TO_E_IN:  limit = 15'(nx_cfg::IN_W);
      nx_cfg::LD_TO_E_W:   limit = 15'(nx_cfg::W_W);
      nx_cfg::LD_TO_E_PAR: limit = 15'(nx_cfg::PAR_W);
      nx_cfg::LD_TO_E_OUT: limit = 15'(nx_cfg::OUT_W);
      default:             limit = 15'(nx_cfg::TAB_WORDS);
    endcase
  always_ff @(posedge clk)
    if (look) begin
      rows <= 26'(h_nz)*26'(h_ny);
      words <= 35'(rows)*35'(h_nx);
      first <= 40'(40'(signed'(h_sy))*40'(h_y0)) + 40'(h_x0) + 40'(h_lo);   // in words, before seg_base + off
    end
  assign bad = 32'(h_to) > nx_cfg::LD_TO_E_TAB || (h_off & 32'(B - 1)) != '0 ? 3'(nx_cfg::FAULT_ILLEGAL)
             : 36'(words) + 36'(h_sp) > 36'(limit) ? 3'(nx_cfg::FAULT_OOB) : '0;
  // ---- request stage
  logic r_busy, r_in, row_inside, row_last;
  logic [12:0] r_ny, r_nz, r_y, r_z;
  logic signed [13:0] r_yy, r_y0;
  logic [11:0] r_y1;
  logic [8:0] r_n, left, beats;
  logic [39:0] row, plane, step_y, step_z, addr;
  logic d_full, d_empty;
  nx_split split (.addr, .left, .beats);
  assign ready = !r_busy && !d_full;
  assign row_inside = r_yy >= 0 && r_yy < $signed({2'b0, r_y1}) && r_n != '0;
  assign row_last = r_in ? req_ack && beats == left : r_busy && !row_inside;
  assign req_v = r_in && !halt;
  assign req_addr = addr;
  assign req_len = 8'(beats - 1'b1);
  always_ff @(posedge clk)
    if (rst) begin
      r_busy <= 1'b0;
      r_in <= 1'b0;
    end else if (start) begin
      r_busy <= 1'b1;
      r_in <= 1'b0;
      r_ny <= h_ny;
      r_nz <= h_nz;
      r_y <= '0;
      r_z <= '0;
      r_y0 <= 14'(h_y0);
      r_yy <= 14'(h_y0);
      r_y1 <= h_y1;
      r_n <= h_hi > h_lo ? h_hi - h_lo : '0;
      row <= seg_base + 40'(h_off) + (first << LB);
      plane <= seg_base + 40'(h_off) + (first << LB);
      step_y <= 40'(signed'(h_sy)) << LB;
      step_z <= 40'(signed'(h_sz)) << LB;
    end else if (r_busy && !halt) begin
      if (!r_in && row_inside) begin
        r_in <= 1'b1;
        addr <= row;
        left <= r_n;
      end
      if (req_ack) begin
        addr <= addr + (40'(beats) << LB);
        left <= left - beats;
      end
      if (row_last) begin
        r_in <= 1'b0;
        r_y <= r_y + 1'b1;
        r_yy <= r_yy + 1'b1;
        row <= row + step_y;
        if (r_y + 1'b1 == r_ny) begin
          r_y <= '0;
          r_yy <= r_y0;
          r_z <= r_z + 1'b1;
          row <= plane + step_z;
          plane <= plane + step_z;
          if (r_z + 1'b1 == r_nz) r_busy <= 1'b0;
        end
      end
    end
  // ---- data stage
  localparam int DW = 3 + 14 + 9*3 + 13*2 + 8 + 12 + 8;
  logic [DW-1:0] d_q;
  logic d_busy, d_pad, d_end;
  logic [13:0] sp;
  logic [8:0] nx, lo, hi, x;
  logic [12:0] ny, nz, y, z;
  logic [7:0] fill;
  logic signed [7:0] y0;
  logic signed [13:0] yy;
  logic [11:0] y1;
  dlc_fifo #(.D(nx_cfg::ISSUE_IN_FLIGHT), .W(DW)) pending (.clk, .rst, .push(start),
      .d({h_to, h_sp, h_nx, h_lo, h_hi, h_ny, h_nz, h_y0, h_y1, h_fill}), .pop(d_end), .q(d_q), .empty(d_empty),
      .full(d_full));
  assign {to, sp, nx, lo, hi, ny, nz, y0, y1, fill} = d_q;
  assign yy = 14'(y0) + 14'(y);
  assign d_busy = !d_empty && !halt && !stall;
  assign d_pad = !(yy >= 0 && yy < $signed({2'b0, y1}) && x >= lo && x < hi);
  assign beat_ready = d_busy && !d_pad;
  assign we = d_busy && (d_pad || beat_v);
  assign wd = d_pad ? {nx_cfg::R{fill}} : beat;
  assign d_end = we && x + 1'b1 == nx && y + 1'b1 == ny && z + 1'b1 == nz;
  assign retire = d_end;
  assign busy = !d_empty;
  logic [13:0] at;
  assign wa = sp + at;
  always_ff @(posedge clk)
    if (rst) begin
      x <= '0;
      y <= '0;
      z <= '0;
      at <= '0;
    end else if (we) begin
      at <= d_end ? '0 : at + 1'b1;
      x <= x + 1'b1;
      if (x + 1'b1 == nx) begin
        x <= '0;
        y <= y + 1'b1;
        if (y + 1'b1 == ny) begin
          y <= '0;
          z <= d_end ? '0 : z + 1'b1;
        end
      end
    end
endmodule
