// mac: R x C weights stay in the columns while one input vector a cycle passes; the next tile loads behind the running
// one. In depthwise mode column c multiplies only lane c of the last one (diag) or three (tri) vectors.
module nx_mac (
    input  logic clk, rst, halt, stall, look, input logic [nx_cfg::WORD-1:0] head,
    output logic ready, output logic [2:0] bad, input logic start, output logic retire,
    output logic in_re, output logic [13:0] in_ra, input logic [nx_cfg::R*8-1:0] in_q,
    output logic w_re, output logic [13:0] w_ra, input logic [nx_cfg::C*8-1:0] w_q,
    output logic acc_re, output logic [10:0] acc_ra, input logic [nx_cfg::C*32-1:0] acc_q,
    output logic acc_we, output logic [10:0] acc_wa, output logic [nx_cfg::C*32-1:0] acc_wd,
    output logic acc_last, busy, useful);                // acc_last: this write is the instruction's last to its word
  localparam int R = nx_cfg::R;
  localparam int C = nx_cfg::C;
  localparam int LR = $clog2(R);
  logic en;
  assign en = !stall && !halt;
  // ---- fields of the head
  logic h_accum, h_dw, h_tri;
  logic [1:0] h_wdir;
  logic [7:0] h_zin, h_zw;
  logic [13:0] h_in, h_w;
  logic [10:0] h_acc;
  logic [11:0] h_ow, h_oh;
  logic [5:0] h_kw, h_kh;
  logic [10:0] h_ci;
  logic signed [15:0] h_sow, h_soh, h_skw, h_skh, h_sci;
  assign h_tri = 32'(h_wdir) == nx_cfg::MAC_WDIR_E_TRI;
  assign h_dw = h_tri || 32'(h_wdir) == nx_cfg::MAC_WDIR_E_DIAG;
  always_ff @(posedge clk)
    if (look) begin
      h_accum <= head[nx_cfg::MAC_ACCUM_L];
      h_wdir <= head[nx_cfg::MAC_WDIR_L +: nx_cfg::MAC_WDIR_W];
      h_zin <= head[nx_cfg::MAC_ZIN_L +: nx_cfg::MAC_ZIN_W];
      h_zw <= head[nx_cfg::MAC_ZW_L +: nx_cfg::MAC_ZW_W];
      h_in <= head[nx_cfg::MAC_IN_BASE_L +: nx_cfg::MAC_IN_BASE_W];
      h_w <= head[nx_cfg::MAC_W_BASE_L +: nx_cfg::MAC_W_BASE_W];
      h_acc <= head[nx_cfg::MAC_ACC_BASE_L +: nx_cfg::MAC_ACC_BASE_W];
      h_ow <= 12'(head[nx_cfg::MAC_N_OW_L +: nx_cfg::MAC_N_OW_W]) + 12'(nx_cfg::MAC_N_OW_P);
      h_oh <= 12'(head[nx_cfg::MAC_N_OH_L +: nx_cfg::MAC_N_OH_W]) + 12'(nx_cfg::MAC_N_OH_P);
      h_kw <= 6'(head[nx_cfg::MAC_N_KW_L +: nx_cfg::MAC_N_KW_W]) + 6'(nx_cfg::MAC_N_KW_P);
      h_kh <= 6'(head[nx_cfg::MAC_N_KH_L +: nx_cfg::MAC_N_KH_W]) + 6'(nx_cfg::MAC_N_KH_P);
      h_ci <= 11'(head[nx_cfg::MAC_N_CI_L +: nx_cfg::MAC_N_CI_W]) + 11'(nx_cfg::MAC_N_CI_P);
      h_sow <= head[nx_cfg::MAC_S_OW_L +: nx_cfg::MAC_S_OW_W];
      h_soh <= head[nx_cfg::MAC_S_OH_L +: nx_cfg::MAC_S_OH_W];
      h_skw <= head[nx_cfg::MAC_S_KW_L +: nx_cfg::MAC_S_KW_W];
      h_skh <= head[nx_cfg::MAC_S_KH_L +: nx_cfg::MAC_S_KH_W];
      h_sci <= head[nx_cfg::MAC_S_CI_L +: nx_cfg::MAC_S_CI_W];
    end
  logic unused;
  assign unused = &{1'b0, head};
  // ---- check
  logic signed [29:0] e_ow, e_oh, e_kw, e_kh, e_ci, lowest, highest;
  logic [22:0] steps, rows;
  logic [22+LR:0] w_words;
  logic twice;
  assign twice = h_sow == 16'(h_skw*2);
  always_ff @(posedge clk)
    if (look) begin
      e_ow <= 30'(h_sow)*$signed({18'b0, h_ow - 12'd1});
      e_oh <= 30'(h_soh)*$signed({18'b0, h_oh - 12'd1});
      e_kw <= 30'(h_skw)*$signed({24'b0, h_kw - 6'd1});
      e_kh <= 30'(h_skh)*$signed({24'b0, h_kh - 6'd1});
      e_ci <= 30'(h_sci)*$signed({19'b0, h_ci - 11'd1});
      lowest <= $signed({16'b0, h_in}) + (e_ow < 0 ? e_ow : '0) + (e_oh < 0 ? e_oh : '0) + (e_kw < 0 ? e_kw : '0)
              + (e_kh < 0 ? e_kh : '0) + (e_ci < 0 ? e_ci : '0);
      highest <= $signed({16'b0, h_in}) + (e_ow > 0 ? e_ow : '0) + (e_oh > 0 ? e_oh : '0) + (e_kw > 0 ? e_kw : '0)
              + (e_kh > 0 ? e_kh : '0) + (e_ci > 0 ? e_ci : '0);
      steps <= 23'(h_ci)*23'(h_kh)*23'(h_kw);
      w_words <= (23+LR)'(steps)*(h_dw ? 1 : (23+LR)'(R));
      rows <= 23'(h_ow)*23'(h_oh);
    end
  logic illegal, oob;
  assign illegal = h_tri ? h_kw > 6'd3 || !(h_sow == h_skw || twice && !h_skw[15] == !h_sow[15])
                         : !h_dw && 32'(w_words) > (h_zw == '0 ? 65536 : 32768);
  assign oob = lowest < 0 || highest >= 30'(nx_cfg::IN_W) || 32'(w_words) + 32'(h_w) > nx_cfg::W_W
            || 32'(rows) + 32'(h_acc) > nx_cfg::ACC_W;
  assign bad = illegal ? 3'(nx_cfg::FAULT_ILLEGAL) : oob ? 3'(nx_cfg::FAULT_OOB) : '0;
  // ---- the running instruction; a tile is the weights of one step over (ci, kh, kw), in tri over (ci, kh)
  logic run, dw, tri3, col, two;
  logic [7:0] zin, zw;
  logic [10:0] acc_base, n_ci;
  logic [12:0] n_j;                    // input vectors walked in a row
  logic [11:0] n_oh;
  logic [5:0] n_kw, n_kh;
  logic [2:0] taps_n;
  logic signed [15:0] s_j, s_oh, s_kw, s_kh, s_ci;
  logic [LR:0] tile_words;
  logic [LR-1:0] first_at;
  assign ready = !run;
  assign busy = run;
  always_ff @(posedge clk)
    if (rst) begin
      run <= 1'b0;
    end else if (start) begin
      run <= 1'b1;
      dw <= h_dw;
      tri3 <= h_tri;
      col <= 32'(h_wdir) == nx_cfg::MAC_WDIR_E_COL;
      two <= h_tri && h_sow != h_skw;
      zin <= h_zin;
      zw <= h_zw;
      acc_base <= h_acc;
      n_j <= !h_tri ? 13'(h_ow) : ((13'(h_ow) - 13'd1) << (h_sow != h_skw)) + 13'(h_kw);
      n_oh <= h_oh;
      n_kw <= h_tri ? 6'd1 : h_kw;
      n_kh <= h_kh;
      n_ci <= h_ci;
      taps_n <= h_tri ? h_kw[2:0] : 3'd1;
      s_j <= h_tri ? h_skw : h_sow;
      s_oh <= h_soh;
      s_kw <= h_skw;
      s_kh <= h_skh;
      s_ci <= h_sci;
      tile_words <= h_tri ? (LR+1)'(h_kw) : h_dw ? (LR+1)'(1) : (LR+1)'(R);
      first_at <= h_tri ? LR'(3) - LR'(h_kw) : h_dw ? LR'(2) : '0;
    end else if (retire) run <= 1'b0;
  // ---- weight loader: fills the shadow set, one word a cycle
  logic loading, loaded, swap_now, ld1, ld1_first;
  logic [13:0] w_ptr;
  logic [22:0] tiles_left;
  logic [LR:0] w_row;
  logic [LR-1:0] at1;
  assign w_re = loading && en;
  assign w_ra = w_ptr;
  always_ff @(posedge clk)
    if (rst) begin
      loading <= 1'b0;
      loaded <= 1'b0;
      tiles_left <= '0;
    end else if (start) begin
      loading <= 1'b1;
      loaded <= 1'b0;
      w_ptr <= h_w;
      w_row <= '0;
      tiles_left <= h_tri ? 23'(h_ci)*23'(h_kh) : steps;
    end else if (en) begin
      if (loading) begin
        w_ptr <= w_ptr + 1'b1;
        w_row <= w_row + 1'b1;
        if (w_row + 1'b1 == tile_words) begin
          loading <= 1'b0;
          loaded <= 1'b1;
          tiles_left <= tiles_left - 1'b1;
        end
      end
      if (swap_now) begin              // the set is copied a cycle later, before the first new word arrives
        loaded <= 1'b0;
        loading <= tiles_left != '0;
        w_row <= '0;
      end
    end
  always_ff @(posedge clk) begin
    ld1 <= w_re;
    ld1_first <= w_row == '0;
    at1 <= first_at + LR'(w_row);
  end
  // ---- walker: one input vector a cycle
  logic pix, first, done, last_j, last_pix, last_tile, out_now;
  logic [12:0] j;
  logic [11:0] oh;
  logic [5:0] kw, kh;
  logic [10:0] ci, acc_ptr;
  logic signed [15:0] a_ci, a_kh, a_kw, a_oh, a_j, next_tile;
  logic [2:0] warm;                    // vectors of this row so far, at most taps - 1
  logic odd;
  assign last_j = j + 1'b1 == n_j;
  assign last_pix = last_j && oh + 1'b1 == n_oh;
  assign last_tile = kw + 1'b1 == n_kw && kh + 1'b1 == n_kh && ci + 1'b1 == n_ci;
  assign out_now = pix && warm + 1'b1 == taps_n && !(two && odd);
  assign next_tile = kw + 1'b1 != n_kw ? a_kw + s_kw : kh + 1'b1 != n_kh ? a_kh + s_kh : a_ci + s_ci;
  // the shadow set is complete but for the word on its way, and no vector of the old tile is left to start
  assign swap_now = loaded && run && !done && (!pix || (last_pix && !last_tile));
  assign in_re = pix && en;
  assign in_ra = a_j[13:0];
  always_ff @(posedge clk)
    if (rst) begin
      pix <= 1'b0;
      done <= 1'b0;
    end else if (start) begin
      pix <= 1'b0;
      done <= 1'b0;
      first <= !h_accum;
      ci <= '0;
      kh <= '0;
      kw <= '0;
      oh <= '0;
      a_ci <= {2'b0, h_in};
      a_kh <= {2'b0, h_in};
      a_kw <= {2'b0, h_in};
      a_oh <= {2'b0, h_in};
      a_j <= {2'b0, h_in};
    end else if (en) begin
      if (pix) begin
        j <= j + 1'b1;
        a_j <= a_j + s_j;
        if (warm + 1'b1 != taps_n) warm <= warm + 1'b1;
        else odd <= !odd;
        if (out_now) acc_ptr <= acc_ptr + 1'b1;
        if (last_j) begin
          j <= '0;
          warm <= '0;
          odd <= 1'b0;
          oh <= oh + 1'b1;
          a_oh <= a_oh + s_oh;
          a_j <= a_oh + s_oh;
        end
        if (last_pix) begin
          pix <= 1'b0;
          first <= 1'b0;
          done <= last_tile;
          a_kw <= next_tile;
          a_oh <= next_tile;
          a_j <= next_tile;
          kw <= kw + 1'b1;
          if (kw + 1'b1 == n_kw) begin
            kw <= '0;
            a_kh <= next_tile;
            kh <= kh + 1'b1;
            if (kh + 1'b1 == n_kh) begin
              kh <= '0;
              a_ci <= next_tile;
              ci <= ci + 1'b1;
            end
          end
        end
      end
      if (swap_now) begin
        pix <= 1'b1;
        j <= '0;
        oh <= '0;
        warm <= '0;
        odd <= 1'b0;
        acc_ptr <= acc_base;
      end
    end
  // ---- array and accumulators: vector (1), product and accumulator (2), sum
  logic swap1, pix1, out1, first1, last1, out2, first2, last2;
  logic [10:0] ptr1, ptr2;
  logic [R-1:0][31:0] x, x_1, x_2;     // the vector and the two before it, zero point subtracted
  for (genvar r = 0; r < R; r++) begin : g_x
    assign x[r] = 32'(signed'(in_q[r*8 +: 8])) - 32'(signed'(zin));
  end
  always_ff @(posedge clk)
    if (rst) begin
      swap1 <= 1'b0;
      pix1 <= 1'b0;
      out1 <= 1'b0;
      out2 <= 1'b0;
    end else begin                     // only the walker and the loader stall; what they have begun passes through
      swap1 <= swap_now && en;
      pix1 <= in_re;
      out1 <= out_now && en;
      first1 <= first;
      last1 <= last_tile;
      ptr1 <= acc_ptr;
      out2 <= out1;
      first2 <= first1;
      last2 <= last1;
      ptr2 <= ptr1;
      if (pix1 && tri3) begin
        x_1 <= x;
        x_2 <= x_1;
      end
    end
  assign useful = pix && en;
  assign acc_re = out1 && !first1;
  assign acc_ra = ptr1;
  assign acc_we = out2 && !halt;
  assign acc_wa = ptr2;
  assign acc_last = last2;
  for (genvar c = 0; c < C; c++) begin : g_col
    logic [31:0] p;
    nx_col column (.clk, .w_row(ld1 && !col), .w_clear(dw && ld1_first), .w_all(ld1 && col && 32'(at1) == c),
        .w_at(at1), .w(w_q[c*8 +: 8]), .w_word(w_q), .zw, .swap(swap1), .en(out1), .dw, .x,
        .taps({x[c], x_1[c], x_2[c]}), .p);
    assign acc_wd[c*32 +: 32] = (first2 ? '0 : acc_q[c*32 +: 32]) + p;
  end
  // ---- retire when the last sum is written
  logic [1:0] drain;
  assign retire = run && done && drain == 2'd2 && !halt;
  always_ff @(posedge clk)
    if (rst || !run || !done) drain <= '0;
    else if (drain != 2'd2) drain <= drain + 1'b1;
`ifndef SYNTHESIS
  always_ff @(posedge clk) if (!rst) a_hazard: assert (!(acc_re && acc_we && acc_ra == acc_wa));
`endif
endmodule
