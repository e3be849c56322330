// exec: conv, dw, pool and add. Parameters are read first; then a walker reads a vector of `act` a cycle, 8 pixels at a
// time, each tap of all of them before the next tap; what is finished goes through the lanes into `res`, in order.
module os_exec (
    input  logic clk, rst, halt, stall, look, input logic [os_cfg::WORD-1:0] head,
    output logic ready, output logic [2:0] bad, input logic start, output logic retire, busy, useful,
    output logic act_re, output logic [12:0] act_ra, input logic [os_cfg::C*8-1:0] act_q,
    output logic wgt_re, output logic [12:0] wgt_ra, input logic [os_cfg::C*8-1:0] wgt_q,
    output logic par_re, output logic [10:0] par_ra, input logic [os_cfg::C*8-1:0] par_q,
    output logic res_re, output logic [11:0] res_ra, input logic [os_cfg::C*8-1:0] res_q,
    output logic we, output logic [11:0] wa, output logic [os_cfg::C*8-1:0] wd);
  localparam int C = os_cfg::C;
  localparam int ZP = os_cfg::PAR_ZP_AT, LO = os_cfg::PAR_LO_AT, HI = os_cfg::PAR_HI_AT, SH = os_cfg::PAR_SH_AT;
  localparam int MUL = os_cfg::PAR_MUL_AT, BIAS = os_cfg::PAR_BIAS_AT;
  localparam int PIXELS = 8;                               // rows of the array
  localparam int RECORD = os_cfg::PAR_ZP_STEP;             // words of par
  // ---- the instruction; it stays in these registers while it runs
  logic conv, dw, pool, add, largest, plain;
  logic [12:0] a_base, w_base, s_ci;
  logic [6:0] p_base;
  logic [11:0] d_base, x_base, s_oh;
  logic [7:0] n_ow, n_oh, n_ci, s_kh, za, zb;
  logic [5:0] n_kw, n_kh;
  logic [4:0] s_ow;
  logic [1:0] s_kw;
  always_ff @(posedge clk)
    if (look) begin
      {conv, dw, pool, add} <= '0;
      {largest, plain, n_ci, s_ci, n_kw, n_kh, s_kw} <= {1'b0, 1'b0, 8'd1, 13'd0, 6'd1, 6'd1, 2'd1};
      w_base <= '0;
      x_base <= '0;
      zb <= '0;
      case (32'(head[os_cfg::OP_L +: os_cfg::OP_W]))
        os_cfg::OP_CONV: begin
          conv <= 1'b1;
          a_base <= head[os_cfg::CONV_A_BASE_L +: os_cfg::CONV_A_BASE_W];
          w_base <= head[os_cfg::CONV_W_BASE_L +: os_cfg::CONV_W_BASE_W];
          p_base <= head[os_cfg::CONV_P_BASE_L +: os_cfg::CONV_P_BASE_W];
          d_base <= head[os_cfg::CONV_D_BASE_L +: os_cfg::CONV_D_BASE_W];
          n_ow <= 8'(head[os_cfg::CONV_N_OW_L +: os_cfg::CONV_N_OW_W]) + 8'(os_cfg::CONV_N_OW_P);
          n_oh <= 8'(head[os_cfg::CONV_N_OH_L +: os_cfg::CONV_N_OH_W]) + 8'(os_cfg::CONV_N_OH_P);
          n_kw <= 6'(head[os_cfg::CONV_N_KW_L +: os_cfg::CONV_N_KW_W]) + 6'(os_cfg::CONV_N_KW_P);
          n_kh <= 6'(head[os_cfg::CONV_N_KH_L +: os_cfg::CONV_N_KH_W]) + 6'(os_cfg::CONV_N_KH_P);
          n_ci <= 8'(head[os_cfg::CONV_N_CI_L +: os_cfg::CONV_N_CI_W]) + 8'(os_cfg::CONV_N_CI_P);
          s_ow <= 5'(head[os_cfg::CONV_S_OW_L +: os_cfg::CONV_S_OW_W]);
          s_oh <= 12'(head[os_cfg::CONV_S_OH_L +: os_cfg::CONV_S_OH_W]);
          s_kw <= head[os_cfg::CONV_S_KW_L +: os_cfg::CONV_S_KW_W];
          s_kh <= head[os_cfg::CONV_S_KH_L +: os_cfg::CONV_S_KH_W];
          s_ci <= head[os_cfg::CONV_S_CI_L +: os_cfg::CONV_S_CI_W];
          za <= head[os_cfg::CONV_ZA_L +: os_cfg::CONV_ZA_W];
        end
        os_cfg::OP_DW: begin
          dw <= 1'b1;
          a_base <= head[os_cfg::DW_A_BASE_L +: os_cfg::DW_A_BASE_W];
          w_base <= head[os_cfg::DW_W_BASE_L +: os_cfg::DW_W_BASE_W];
          p_base <= head[os_cfg::DW_P_BASE_L +: os_cfg::DW_P_BASE_W];
          d_base <= head[os_cfg::DW_D_BASE_L +: os_cfg::DW_D_BASE_W];
          n_ow <= 8'(head[os_cfg::DW_N_OW_L +: os_cfg::DW_N_OW_W]) + 8'(os_cfg::DW_N_OW_P);
          n_oh <= 8'(head[os_cfg::DW_N_OH_L +: os_cfg::DW_N_OH_W]) + 8'(os_cfg::DW_N_OH_P);
          n_kw <= 6'(head[os_cfg::DW_N_KW_L +: os_cfg::DW_N_KW_W]) + 6'(os_cfg::DW_N_KW_P);
          n_kh <= 6'(head[os_cfg::DW_N_KH_L +: os_cfg::DW_N_KH_W]) + 6'(os_cfg::DW_N_KH_P);
          s_ow <= 5'(head[os_cfg::DW_S_OW_L +: os_cfg::DW_S_OW_W]);
          s_oh <= 12'(head[os_cfg::DW_S_OH_L +: os_cfg::DW_S_OH_W]);
          s_kw <= head[os_cfg::DW_S_KW_L +: os_cfg::DW_S_KW_W];
          s_kh <= head[os_cfg::DW_S_KH_L +: os_cfg::DW_S_KH_W];
          za <= head[os_cfg::DW_ZA_L +: os_cfg::DW_ZA_W];
        end
        os_cfg::OP_POOL: begin
          pool <= 1'b1;
          largest <= 32'(head[os_cfg::POOL_RED_L +: os_cfg::POOL_RED_W]) == os_cfg::POOL_RED_E_MAX;
          plain <= 32'(head[os_cfg::POOL_SCL_L +: os_cfg::POOL_SCL_W]) == os_cfg::POOL_SCL_E_NO;
          a_base <= head[os_cfg::POOL_A_BASE_L +: os_cfg::POOL_A_BASE_W];
          p_base <= head[os_cfg::POOL_P_BASE_L +: os_cfg::POOL_P_BASE_W];
          d_base <= head[os_cfg::POOL_D_BASE_L +: os_cfg::POOL_D_BASE_W];
          n_ow <= 8'(head[os_cfg::POOL_N_OW_L +: os_cfg::POOL_N_OW_W]) + 8'(os_cfg::POOL_N_OW_P);
          n_oh <= 8'(head[os_cfg::POOL_N_OH_L +: os_cfg::POOL_N_OH_W]) + 8'(os_cfg::POOL_N_OH_P);
          n_kw <= 6'(head[os_cfg::POOL_N_KW_L +: os_cfg::POOL_N_KW_W]) + 6'(os_cfg::POOL_N_KW_P);
          n_kh <= 6'(head[os_cfg::POOL_N_KH_L +: os_cfg::POOL_N_KH_W]) + 6'(os_cfg::POOL_N_KH_P);
          s_ow <= head[os_cfg::POOL_S_OW_L +: os_cfg::POOL_S_OW_W];
          s_oh <= head[os_cfg::POOL_S_OH_L +: os_cfg::POOL_S_OH_W];
          s_kh <= head[os_cfg::POOL_S_KH_L +: os_cfg::POOL_S_KH_W];
          za <= head[os_cfg::POOL_ZA_L +: os_cfg::POOL_ZA_W];
        end
        default: begin                                     // add: dense, a window of one element
          add <= 1'b1;
          x_base <= head[os_cfg::ADD_X_BASE_L +: os_cfg::ADD_X_BASE_W];
          a_base <= head[os_cfg::ADD_Y_BASE_L +: os_cfg::ADD_Y_BASE_W];
          p_base <= head[os_cfg::ADD_P_BASE_L +: os_cfg::ADD_P_BASE_W];
          d_base <= head[os_cfg::ADD_D_BASE_L +: os_cfg::ADD_D_BASE_W];
          n_ow <= 8'(head[os_cfg::ADD_N_OW_L +: os_cfg::ADD_N_OW_W]) + 8'(os_cfg::ADD_N_OW_P);
          n_oh <= 8'(head[os_cfg::ADD_N_OH_L +: os_cfg::ADD_N_OH_W]) + 8'(os_cfg::ADD_N_OH_P);
          s_ow <= 5'd1;
          s_oh <= 12'(head[os_cfg::ADD_N_OW_L +: os_cfg::ADD_N_OW_W]) + 12'(os_cfg::ADD_N_OW_P);
          s_kh <= '0;
          za <= head[os_cfg::ADD_ZB_L +: os_cfg::ADD_ZB_W];  // of what is in act
          zb <= head[os_cfg::ADD_ZA_L +: os_cfg::ADD_ZA_W];
        end
      endcase
    end
  logic unused;
  assign unused = &{1'b0, head};
  // ---- check
  logic [20:0] e_ow, e_oh, e_kw, e_kh, e_ci, top_a, w_words;
  logic [15:0] pixels;
  logic [18:0] steps;
  always_ff @(posedge clk)
    if (look) begin
      e_ow <= (21'(n_ow) - 21'd1)*21'(s_ow);
      e_oh <= (21'(n_oh) - 21'd1)*21'(s_oh);
      e_kw <= (21'(n_kw) - 21'd1)*21'(s_kw);
      e_kh <= (21'(n_kh) - 21'd1)*21'(s_kh);
      e_ci <= (21'(n_ci) - 21'd1)*21'(s_ci);
      steps <= 19'(n_kw)*19'(n_kh)*19'(n_ci);
      pixels <= 16'(n_ow)*16'(n_oh);
    end
  assign top_a = 21'(a_base) + e_ow + e_oh + e_kw + e_kh + e_ci;
  assign w_words = 21'(w_base) + (conv ? 21'(steps)*21'(C) : dw ? 21'(steps) : '0);
  logic oob;
  assign oob = top_a >= 21'(os_cfg::ACT_W) || w_words > 21'(os_cfg::WGT_W) || 32'(p_base) >= os_cfg::PAR_N
            || 17'(pixels) + 17'(d_base) > 17'(os_cfg::RES_W) || (add && 17'(pixels) + 17'(x_base) > 17'(os_cfg::RES_W));
  assign bad = conv && 32'(steps)*C > 32768 ? 3'(os_cfg::FAULT_ILLEGAL) : oob ? 3'(os_cfg::FAULT_OOB) : '0;
  // ---- parameters
  logic run, par_run, par_got;
  logic [3:0] par_at;
  logic [RECORD*C*8-1:0] par;                              // the last word on top
  assign ready = !run;
  assign busy = run;
  assign par_re = par_run;
  always_ff @(posedge clk) begin
    par_got <= par_run;
    if (par_got) par <= {par_q, par[RECORD*C*8-1:C*8]};
    if (rst) par_run <= 1'b0;
    else if (start) begin
      par_run <= 1'b1;
      par_ra <= 11'(p_base)*11'(RECORD);
      par_at <= '0;
    end else if (par_run) begin
      par_ra <= par_ra + 1'b1;
      par_at <= par_at + 1'b1;
      if (par_at == 4'(RECORD - 1)) par_run <= 1'b0;
    end
  end
  // ---- walker
  logic walk, go, read, first_tap, last_tap, last_slot, last_kw, last_kh;
  logic [2:0] p;
  logic [3:0] n_p;                                         // pixels of this block
  logic [5:0] kw, kh;
  logic [7:0] ci, ow;
  logic [12:0] tap_kw, tap_kh, tap_ci, pix_ow, pix_oh, w_tap;
  logic [PIXELS-1:0][12:0] pix;                            // where the pixels of this block are
  logic [15:0] left;
  assign go = walk && !stall && !halt;
  assign read = go && 4'(p) < n_p;
  assign first_tap = kw == '0 && kh == '0 && ci == '0;
  assign last_kw = kw + 1'b1 == n_kw;
  assign last_kh = kh + 1'b1 == n_kh;
  assign last_tap = last_kw && last_kh && ci + 1'b1 == n_ci;
  assign last_slot = conv ? p == 3'd7 : 4'(p) + 1'b1 == n_p;
  assign act_re = read;
  assign act_ra = a_base + tap_kw + (first_tap ? pix_ow : pix[p]);
  assign res_re = read && add;
  assign res_ra = x_base + pix_ow[11:0];
  always_ff @(posedge clk)
    if (rst) walk <= 1'b0;
    else if (start) begin
      p <= '0;
      n_p <= pixels < 16'd8 ? pixels[3:0] : 4'd8;
      left <= pixels;
      kw <= '0;
      kh <= '0;
      ci <= '0;
      ow <= '0;
      {tap_kw, tap_kh, tap_ci, pix_ow, pix_oh} <= '0;
      w_tap <= w_base;
    end else begin
      if (par_run && par_at == 4'(RECORD - 1)) walk <= 1'b1;
      if (read && first_tap) begin
        pix[p] <= pix_ow;
        ow <= ow + 1'b1;
        pix_ow <= pix_ow + 13'(s_ow);
        if (ow + 1'b1 == n_ow) begin
          ow <= '0;
          pix_ow <= pix_oh + 13'(s_oh);
          pix_oh <= pix_oh + 13'(s_oh);
        end
      end
      if (go) begin
        p <= last_slot ? '0 : p + 1'b1;
        if (last_slot) begin
          kw <= last_kw ? '0 : kw + 1'b1;
          tap_kw <= tap_kw + 13'(s_kw);
          w_tap <= w_tap + 1'b1;
          if (last_kw) begin
            kh <= last_kh ? '0 : kh + 1'b1;
            tap_kw <= tap_kh + 13'(s_kh);
            tap_kh <= tap_kh + 13'(s_kh);
            if (last_kh) begin
              ci <= ci + 1'b1;
              tap_kw <= tap_ci + s_ci;
              tap_kh <= tap_ci + s_ci;
              tap_ci <= tap_ci + s_ci;
            end
          end
          if (last_tap) begin
            ci <= '0;
            {tap_kw, tap_kh, tap_ci} <= '0;
            w_tap <= w_base;
            left <= left - 16'(n_p);
            n_p <= left - 16'(n_p) < 16'd8 ? 4'(left - 16'(n_p)) : 4'd8;
            if (left == 16'(n_p)) walk <= 1'b0;
          end
        end
      end
    end
  // ---- 1: the vector, its zero point subtracted
  logic v1, end1, first1, last1;
  logic [2:0] p1;
  logic [3:0] n1;
  logic [C-1:0][8:0] x1, y1;
  always_ff @(posedge clk) begin
    v1 <= read && !rst;
    end1 <= go && conv && last_slot && !rst;
    first1 <= first_tap;
    last1 <= last_tap;
    p1 <= p;
    n1 <= n_p;
  end
  for (genvar c = 0; c < C; c++) begin : g_zero
    assign x1[c] = 9'($signed(act_q[c*8 +: 8])) - 9'($signed(za));
    assign y1[c] = 9'($signed(res_q[c*8 +: 8])) - 9'($signed(zb));
  end
  // ---- 2, of conv: the vectors become live, then meet 8 weight words
  logic swap, first2, last2, step, s_first, s_last;
  logic [3:0] n2, s_n;
  logic [2:0] k;
  logic [12:0] w_ptr;
  always_ff @(posedge clk) begin
    swap <= end1 && !rst;
    first2 <= first1;
    last2 <= last1;
    n2 <= n1;
    if (rst) step <= 1'b0;
    else if (swap) begin
      step <= 1'b1;
      k <= '0;
      s_first <= first2;
      s_last <= last2;
      s_n <= n2;
    end else if (step) begin
      k <= k + 1'b1;
      if (k == 3'd7) step <= 1'b0;
    end
    if (wgt_re) w_ptr <= wgt_ra + 1'b1;
  end
  assign wgt_re = conv ? swap || (step && k != 3'd7) : read && dw;
  assign wgt_ra = !conv ? w_tap : swap && first2 ? w_base : w_ptr;
  // ---- the array
  logic [PIXELS-1:0][C-1:0][31:0] sums, drain;
  logic [C-1:0][7:0] w;
  assign w = pool ? {C{8'd1}} : wgt_q;
  for (genvar r = 0; r < PIXELS; r++) begin : g_row
    os_row row (.clk, .conv, .take(conv && v1 && p1 == 3'(r)), .x(x1), .swap, .step, .k,
        .tap((dw || pool) && v1 && p1 == 3'(r)), .first(conv ? s_first && k == '0 : first1), .largest, .w, .sums(sums[r]));
  end
  assign useful = conv ? step : v1 && (dw || pool);
  // ---- what is finished goes to the lanes, a pixel a cycle
  logic d_v, full_block, l_v, l_v1, l_v2;
  logic [2:0] d_p;
  logic [3:0] d_n;
  logic [C-1:0][31:0] l_x;
  logic [C-1:0][8:0] l_y;
  assign full_block = step && k == 3'd7 && s_last;
  always_ff @(posedge clk) begin
    if (full_block) drain <= sums;
    if (rst) d_v <= 1'b0;
    else if (full_block) begin
      d_v <= 1'b1;
      d_p <= '0;
      d_n <= s_n;
    end else if (d_v) begin
      d_p <= d_p + 1'b1;
      if (4'(d_p) + 1'b1 == d_n) d_v <= 1'b0;
    end
    l_v <= !rst && (conv ? d_v : v1 && last1);
    if (conv ? d_v : v1 && last1)
      for (int c = 0; c < C; c++) begin
        l_x[c] <= conv ? drain[d_p][c] : add ? 32'($signed(y1[c])) : sums[p1][c];
        l_y[c] <= x1[c];
      end
    l_v1 <= l_v && !rst;
    l_v2 <= l_v1 && !rst;
  end
  for (genvar c = 0; c < C; c++) begin : g_lane
    os_lane lane (.clk, .v0(l_v), .v1(l_v1), .add, .plain, .x(l_x[c]), .y(l_y[c]),
        .bias(pool ? '0 : par[BIAS*C*8 + c*32 +: 32]), .mul(par[MUL*C*8 + c*32 +: 32]), .sh(par[SH*C*8 + c*8 +: 6]),
        .zp(par[ZP*C*8 + c*8 +: 8]), .lo(par[LO*C*8 + c*8 +: 8]), .hi(par[HI*C*8 + c*8 +: 8]), .q(wd[c*8 +: 8]));
    logic unused_sh;
    assign unused_sh = &{1'b0, par[SH*C*8 + c*8 + 6 +: 2]};
  end
  // ---- write
  logic [15:0] to_write;
  assign we = l_v2 && !halt;
  assign retire = we && to_write == 16'd1;
  always_ff @(posedge clk)
    if (rst) run <= 1'b0;
    else if (start) begin
      run <= 1'b1;
      wa <= d_base;
      to_write <= pixels;
    end else if (we) begin
      wa <= wa + 1'b1;
      to_write <= to_write - 1'b1;
      if (retire) run <= 1'b0;
    end
`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst && !halt) begin
      a_order: assert (!(full_block && d_v && 4'(d_p) + 1'b1 != d_n));     // the block before has left the array
      a_swap: assert (!(swap && step && k != 3'd7));
      a_write: assert (!we || run);
    end
`endif
endmodule
