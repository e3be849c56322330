// vec, vec2, row and norm: one pipeline over C lanes. vec folds a window of one operand and scales it by the lane's or
// the instruction's multiplier; vec2 adds or multiplies two int8 operands; row takes the maximum of all lanes, multiplies
// by the reciprocal of what is in acc, or leaves a row's variance there (nx_var); norm divides by the root of that and
// multiplies by the lane's gain. Then zero point and clamp, and for vec and vec2 a table. What only `row` and `norm` need is computed
// where they run, so that a simulation of the others does not pay for it.
//
// Stages: read (0) | fold (1) | first operand of the multiplier (2) | product (3) | round, clamp (4) | table (5) | write.
// A vector of norm is four reads, as many as it has words of parameters, and its second product is one stage more.
module nx_vec (
    input  logic clk, rst, halt, stall, look, input logic [nx_cfg::WORD-1:0] head,
    output logic ready, output logic [2:0] bad, input logic start, output logic retire,
    // what this cycle needs; `conflict` refuses all of it
    output logic acc_want, in_want, out0_want, out1_want, wr_want, wr_in, wr_acc, output logic [13:0] a_ra, b_ra, acc_ra, wa,
    input  logic conflict, output logic step,
    input  logic [nx_cfg::C*32-1:0] acc_q, input logic [nx_cfg::C*8-1:0] in_q, out0_q, out1_q,
    output logic par_re, output logic [9:0] par_ra, input logic [nx_cfg::C*8-1:0] par_q,
    input  logic t_we, input logic [$clog2(nx_cfg::TAB_WORDS)-1:0] t_wa, input logic [nx_cfg::C*8-1:0] t_wd,
    output logic [nx_cfg::C*8-1:0] wd, output logic [31:0] var_wd, output logic busy);
  localparam int C = nx_cfg::C;
  localparam int BIAS = nx_cfg::PAR_BIAS_AT, MUL = nx_cfg::PAR_MUL_AT, SH = nx_cfg::PAR_SH_AT;
  localparam int PAR_N = SH + 1;       // words of a parameter record: bias 4, multiplier 4, shift 1
  localparam int GAIN = nx_cfg::PAR_GAIN_AT, PLUS = nx_cfg::PAR_PLUS_AT;
  localparam int NORM_N = PLUS + 2;    // of norm: gain 2, shift 2
  // ---- fields of the head
  logic h_two, h_lane, h_max, h_lut, h_mul, h_acc, h_a_in, h_b_in, h_d_in, h_unknown, h_div, h_across, h_var, h_norm;
  logic [7:0] h_slot, h_za, h_zb, h_zp, h_lo, h_hi;
  logic [13:0] h_a, h_b, h_c, h_d;
  logic [9:0] h_p;
  logic [11:0] h_ow, h_oh;
  logic [7:0] h_kw;
  logic [5:0] h_kh, h_sh;
  logic [13:0] h_sow, h_soh, h_skw, h_skh, h_bow, h_boh, h_cow, h_dow, h_doh;
  logic [30:0] h_ma;
  logic [23:0] h_mb;
  logic [12:0] h_n;
  always_ff @(posedge clk)
    if (look) begin
      // what an instruction does not say
      {h_two, h_lane, h_max, h_lut, h_mul, h_acc, h_b_in, h_unknown, h_div, h_across, h_var, h_norm} <= '0;
      {h_kw, h_kh} <= {8'd1, 6'd1};
      case (32'(head[nx_cfg::OP_L +: nx_cfg::OP_W]))
        nx_cfg::OP_VEC: begin
          h_acc <= 32'(head[nx_cfg::VEC_A_L +: nx_cfg::VEC_A_W]) == nx_cfg::VEC_A_E_ACC;
          h_a_in <= 32'(head[nx_cfg::VEC_A_L +: nx_cfg::VEC_A_W]) == nx_cfg::VEC_A_E_IN;
          h_d_in <= 32'(head[nx_cfg::VEC_DST_L +: nx_cfg::VEC_DST_W]) == nx_cfg::VEC_DST_E_IN;
          h_unknown <= 32'(head[nx_cfg::VEC_A_L +: nx_cfg::VEC_A_W]) > nx_cfg::VEC_A_E_OUT;
          h_lane <= 32'(head[nx_cfg::VEC_SCL_L +: nx_cfg::VEC_SCL_W]) == nx_cfg::VEC_SCL_E_LANE;
          h_max <= 32'(head[nx_cfg::VEC_RED_L +: nx_cfg::VEC_RED_W]) == nx_cfg::VEC_RED_E_MAX;
          h_lut <= 32'(head[nx_cfg::VEC_LUT_L +: nx_cfg::VEC_LUT_W]) == nx_cfg::VEC_LUT_E_T8;
          h_slot <= 8'(head[nx_cfg::VEC_SLOT_L +: nx_cfg::VEC_SLOT_W]);
          h_a <= head[nx_cfg::VEC_A_BASE_L +: nx_cfg::VEC_A_BASE_W];
          h_d <= head[nx_cfg::VEC_D_BASE_L +: nx_cfg::VEC_D_BASE_W];
          h_p <= head[nx_cfg::VEC_P_BASE_L +: nx_cfg::VEC_P_BASE_W];
          h_ow <= 12'(head[nx_cfg::VEC_N_OW_L +: nx_cfg::VEC_N_OW_W]) + 12'(nx_cfg::VEC_N_OW_P);
          h_oh <= 12'(head[nx_cfg::VEC_N_OH_L +: nx_cfg::VEC_N_OH_W]) + 12'(nx_cfg::VEC_N_OH_P);
          h_kw <= 8'(head[nx_cfg::VEC_N_KW_L +: nx_cfg::VEC_N_KW_W]) + 8'(nx_cfg::VEC_N_KW_P);
          h_kh <= 6'(head[nx_cfg::VEC_N_KH_L +: nx_cfg::VEC_N_KH_W]) + 6'(nx_cfg::VEC_N_KH_P);
          h_sow <= 14'(head[nx_cfg::VEC_S_OW_L +: nx_cfg::VEC_S_OW_W]);
          h_soh <= 14'(head[nx_cfg::VEC_S_OH_L +: nx_cfg::VEC_S_OH_W]);
          h_skw <= 14'(head[nx_cfg::VEC_S_KW_L +: nx_cfg::VEC_S_KW_W]);
          h_skh <= 14'(head[nx_cfg::VEC_S_KH_L +: nx_cfg::VEC_S_KH_W]);
          h_dow <= 14'(head[nx_cfg::VEC_D_OW_L +: nx_cfg::VEC_D_OW_W]);
          h_doh <= 14'(head[nx_cfg::VEC_D_OH_L +: nx_cfg::VEC_D_OH_W]);
          h_za <= head[nx_cfg::VEC_ZA_L +: nx_cfg::VEC_ZA_W];
          h_zp <= head[nx_cfg::VEC_ZP_L +: nx_cfg::VEC_ZP_W];
          h_lo <= head[nx_cfg::VEC_LO_L +: nx_cfg::VEC_LO_W];
          h_hi <= head[nx_cfg::VEC_HI_L +: nx_cfg::VEC_HI_W];
          h_ma <= head[nx_cfg::VEC_MA_L +: nx_cfg::VEC_MA_W];
          h_sh <= head[nx_cfg::VEC_SH_L +: nx_cfg::VEC_SH_W];
        end
        nx_cfg::OP_VEC2: begin
          h_two <= 1'b1;
          h_a_in <= 32'(head[nx_cfg::VEC2_A_L +: nx_cfg::VEC2_A_W]) == nx_cfg::VEC2_A_E_IN;
          h_b_in <= 32'(head[nx_cfg::VEC2_B_L +: nx_cfg::VEC2_B_W]) == nx_cfg::VEC2_B_E_IN;
          h_d_in <= 32'(head[nx_cfg::VEC2_DST_L +: nx_cfg::VEC2_DST_W]) == nx_cfg::VEC2_DST_E_IN;
          h_mul <= 32'(head[nx_cfg::VEC2_BOP_L +: nx_cfg::VEC2_BOP_W]) == nx_cfg::VEC2_BOP_E_MUL;
          h_lut <= 32'(head[nx_cfg::VEC2_LUT_L +: nx_cfg::VEC2_LUT_W]) == nx_cfg::VEC2_LUT_E_T8;
          h_slot <= 8'(head[nx_cfg::VEC2_SLOT_L +: nx_cfg::VEC2_SLOT_W]);
          h_a <= head[nx_cfg::VEC2_A_BASE_L +: nx_cfg::VEC2_A_BASE_W];
          h_b <= head[nx_cfg::VEC2_B_BASE_L +: nx_cfg::VEC2_B_BASE_W];
          h_d <= head[nx_cfg::VEC2_D_BASE_L +: nx_cfg::VEC2_D_BASE_W];
          h_ow <= 12'(head[nx_cfg::VEC2_N_OW_L +: nx_cfg::VEC2_N_OW_W]) + 12'(nx_cfg::VEC2_N_OW_P);
          h_oh <= 12'(head[nx_cfg::VEC2_N_OH_L +: nx_cfg::VEC2_N_OH_W]) + 12'(nx_cfg::VEC2_N_OH_P);
          h_sow <= 14'(head[nx_cfg::VEC2_A_OW_L +: nx_cfg::VEC2_A_OW_W]);
          h_soh <= 14'(head[nx_cfg::VEC2_A_OH_L +: nx_cfg::VEC2_A_OH_W]);
          h_bow <= 14'(head[nx_cfg::VEC2_B_OW_L +: nx_cfg::VEC2_B_OW_W]);
          h_boh <= 14'(head[nx_cfg::VEC2_B_OH_L +: nx_cfg::VEC2_B_OH_W]);
          h_dow <= 14'(head[nx_cfg::VEC2_D_OW_L +: nx_cfg::VEC2_D_OW_W]);
          h_doh <= 14'(head[nx_cfg::VEC2_D_OH_L +: nx_cfg::VEC2_D_OH_W]);
          h_za <= head[nx_cfg::VEC2_ZA_L +: nx_cfg::VEC2_ZA_W];
          h_zb <= head[nx_cfg::VEC2_ZB_L +: nx_cfg::VEC2_ZB_W];
          h_zp <= head[nx_cfg::VEC2_ZP_L +: nx_cfg::VEC2_ZP_W];
          h_lo <= head[nx_cfg::VEC2_LO_L +: nx_cfg::VEC2_LO_W];
          h_hi <= head[nx_cfg::VEC2_HI_L +: nx_cfg::VEC2_HI_W];
          h_ma <= 31'(head[nx_cfg::VEC2_MA_L +: nx_cfg::VEC2_MA_W]);
          h_mb <= head[nx_cfg::VEC2_MB_L +: nx_cfg::VEC2_MB_W];
          h_sh <= head[nx_cfg::VEC2_SH_L +: nx_cfg::VEC2_SH_W];
        end
        nx_cfg::OP_NORM: begin         // vectors of a row are the inner loop, the four words of one its window
          h_norm <= 1'b1;
          h_a_in <= 32'(head[nx_cfg::NORM_A_L +: nx_cfg::NORM_A_W]) == nx_cfg::NORM_A_E_IN;
          h_d_in <= 32'(head[nx_cfg::NORM_DST_L +: nx_cfg::NORM_DST_W]) == nx_cfg::NORM_DST_E_IN;
          h_n <= 13'((32'(head[nx_cfg::NORM_N_K_L +: nx_cfg::NORM_N_K_W]) + nx_cfg::NORM_N_K_P)*C);
          h_a <= head[nx_cfg::NORM_A_BASE_L +: nx_cfg::NORM_A_BASE_W];
          h_b <= 14'(head[nx_cfg::NORM_B_BASE_L +: nx_cfg::NORM_B_BASE_W]);
          h_c <= 14'(head[nx_cfg::NORM_C_BASE_L +: nx_cfg::NORM_C_BASE_W]);
          h_d <= head[nx_cfg::NORM_D_BASE_L +: nx_cfg::NORM_D_BASE_W];
          h_p <= head[nx_cfg::NORM_P_BASE_L +: nx_cfg::NORM_P_BASE_W];
          h_kw <= 8'(NORM_N);
          h_ow <= 12'(head[nx_cfg::NORM_N_K_L +: nx_cfg::NORM_N_K_W]) + 12'(nx_cfg::NORM_N_K_P);
          h_oh <= 12'(head[nx_cfg::NORM_N_OW_L +: nx_cfg::NORM_N_OW_W]) + 12'(nx_cfg::NORM_N_OW_P);
          h_skw <= '0;
          h_sow <= 14'(head[nx_cfg::NORM_A_K_L +: nx_cfg::NORM_A_K_W]);
          h_soh <= 14'(head[nx_cfg::NORM_A_OW_L +: nx_cfg::NORM_A_OW_W]);
          h_bow <= '0;
          h_boh <= 14'(head[nx_cfg::NORM_B_OW_L +: nx_cfg::NORM_B_OW_W]);
          h_cow <= 14'(head[nx_cfg::NORM_C_OW_L +: nx_cfg::NORM_C_OW_W]);
          h_dow <= 14'(head[nx_cfg::NORM_D_K_L +: nx_cfg::NORM_D_K_W]);
          h_doh <= 14'(head[nx_cfg::NORM_D_OW_L +: nx_cfg::NORM_D_OW_W]);
          h_za <= head[nx_cfg::NORM_ZA_L +: nx_cfg::NORM_ZA_W];
          h_zp <= head[nx_cfg::NORM_ZP_L +: nx_cfg::NORM_ZP_W];
          h_lo <= head[nx_cfg::NORM_LO_L +: nx_cfg::NORM_LO_W];
          h_hi <= head[nx_cfg::NORM_HI_L +: nx_cfg::NORM_HI_W];
          h_mb <= head[nx_cfg::NORM_MB_L +: nx_cfg::NORM_MB_W];
          h_sh <= head[nx_cfg::NORM_SH_L +: nx_cfg::NORM_SH_W];
        end
        default: begin                 // row
          h_a_in <= 32'(head[nx_cfg::ROW_A_L +: nx_cfg::ROW_A_W]) == nx_cfg::ROW_A_E_IN;
          h_d_in <= 32'(head[nx_cfg::ROW_DST_L +: nx_cfg::ROW_DST_W]) == nx_cfg::ROW_DST_E_IN;
          h_n <= 13'(head[nx_cfg::ROW_N_L +: nx_cfg::ROW_N_W]) + 13'(nx_cfg::ROW_N_P);
          h_a <= head[nx_cfg::ROW_A_BASE_L +: nx_cfg::ROW_A_BASE_W];
          h_b <= 14'(head[nx_cfg::ROW_B_BASE_L +: nx_cfg::ROW_B_BASE_W]);
          h_d <= head[nx_cfg::ROW_D_BASE_L +: nx_cfg::ROW_D_BASE_W];
          h_ow <= 12'(head[nx_cfg::ROW_N_OW_L +: nx_cfg::ROW_N_OW_W]) + 12'(nx_cfg::ROW_N_OW_P);
          h_oh <= 12'(head[nx_cfg::ROW_N_OH_L +: nx_cfg::ROW_N_OH_W]) + 12'(nx_cfg::ROW_N_OH_P);
          h_kw <= 8'(head[nx_cfg::ROW_N_K_L +: nx_cfg::ROW_N_K_W]) + 8'(nx_cfg::ROW_N_K_P);
          h_sow <= 14'(head[nx_cfg::ROW_A_OW_L +: nx_cfg::ROW_A_OW_W]);
          h_soh <= 14'(head[nx_cfg::ROW_A_OH_L +: nx_cfg::ROW_A_OH_W]);
          h_skw <= 14'(head[nx_cfg::ROW_A_K_L +: nx_cfg::ROW_A_K_W]);
          h_bow <= 14'(head[nx_cfg::ROW_B_OW_L +: nx_cfg::ROW_B_OW_W]);
          h_boh <= 14'(head[nx_cfg::ROW_B_OH_L +: nx_cfg::ROW_B_OH_W]);
          h_dow <= 14'(head[nx_cfg::ROW_D_OW_L +: nx_cfg::ROW_D_OW_W]);
          h_doh <= 14'(head[nx_cfg::ROW_D_OH_L +: nx_cfg::ROW_D_OH_W]);
          h_unknown <= 32'(head[nx_cfg::ROW_F_L +: nx_cfg::ROW_F_W]) > nx_cfg::ROW_F_E_VAR;
          if (32'(head[nx_cfg::ROW_F_L +: nx_cfg::ROW_F_W]) == nx_cfg::ROW_F_E_VAR) begin
            h_var <= 1'b1;
            h_n <= 13'((32'(head[nx_cfg::ROW_N_K_L +: nx_cfg::ROW_N_K_W]) + nx_cfg::ROW_N_K_P)*C);
            h_za <= head[nx_cfg::ROW_ZA_L +: nx_cfg::ROW_ZA_W];
            h_ma <= 31'(head[nx_cfg::ROW_MA_L +: nx_cfg::ROW_MA_W]);
            h_sh <= head[nx_cfg::ROW_SH_L +: nx_cfg::ROW_SH_W];
          end else if (32'(head[nx_cfg::ROW_F_L +: nx_cfg::ROW_F_W]) == nx_cfg::ROW_F_E_DIV) begin
            h_div <= 1'b1;
            h_za <= head[nx_cfg::ROW_ZA_L +: nx_cfg::ROW_ZA_W];
            h_zp <= head[nx_cfg::ROW_ZP_L +: nx_cfg::ROW_ZP_W];
            h_lo <= head[nx_cfg::ROW_LO_L +: nx_cfg::ROW_LO_W];
            h_hi <= head[nx_cfg::ROW_HI_L +: nx_cfg::ROW_HI_W];
            h_ma <= 31'(head[nx_cfg::ROW_MA_L +: nx_cfg::ROW_MA_W]);
            h_sh <= head[nx_cfg::ROW_SH_L +: nx_cfg::ROW_SH_W];
          end else begin               // a maximum leaves as it is
            h_across <= 1'b1;
            h_za <= '0;
            h_zp <= '0;
            h_lo <= 8'h80;
            h_hi <= 8'h7f;
            h_ma <= 31'd1;
            h_sh <= '0;
          end
        end
      endcase
    end
  logic unused;
  assign unused = &{1'b0, head};
  // ---- check
  logic [26:0] e_a1, e_a2, e_a3, e_a4, e_b1, e_b2, e_c, e_d1, e_d2, top_a, top_b, top_c, top_d;
  always_ff @(posedge clk)
    if (look) begin
      e_a1 <= (27'(h_ow) - 27'd1)*27'(h_sow);
      e_a2 <= (27'(h_oh) - 27'd1)*27'(h_soh);
      e_a3 <= (27'(h_kw) - 27'd1)*27'(h_skw);
      e_a4 <= (27'(h_kh) - 27'd1)*27'(h_skh);
      e_b1 <= (27'(h_ow) - 27'd1)*27'(h_bow);
      e_b2 <= (27'(h_oh) - 27'd1)*27'(h_boh);
      e_c <= (27'(h_oh) - 27'd1)*27'(h_cow);
      e_d1 <= (27'(h_ow) - 27'd1)*27'(h_dow);
      e_d2 <= (27'(h_oh) - 27'd1)*27'(h_doh);
      top_a <= 27'(h_a) + e_a1 + e_a2 + e_a3 + e_a4;
      top_b <= 27'(h_b) + e_b1 + e_b2;
      top_c <= 27'(h_c) + e_c;
      top_d <= 27'(h_d) + e_d1 + e_d2;
    end
  localparam logic [26:0] ACC_N = 27'(nx_cfg::ACC_W), IN_N = 27'(nx_cfg::IN_W), OUT_N = 27'(nx_cfg::OUT_W);
  logic illegal, oob;
  always_comb
    if (h_unknown) illegal = 1'b1;
    else if (h_two) illegal = h_a_in && h_b_in;
    else if (h_div) illegal = h_kw != 8'd1;
    else if (h_across) illegal = 13'(h_n) <= (13'(h_kw) - 13'd1)*13'(C);   // the last vector has nothing of the row
    else illegal = 1'b0;
  always_comb begin
    oob = top_a >= (h_acc ? ACC_N : h_a_in ? IN_N : OUT_N) || top_d >= (h_var ? ACC_N : h_d_in ? IN_N : OUT_N);
    if (h_two && top_b >= (h_b_in ? IN_N : OUT_N)) oob = 1'b1;
    if ((h_div || h_var || h_norm) && top_b >= ACC_N) oob = 1'b1;
    if (h_norm && (top_c >= ACC_N || 32'(h_p) + NORM_N*32'(h_ow) > nx_cfg::PAR_W)) oob = 1'b1;
    if (h_lane && 32'(h_p) + PAR_N > nx_cfg::PAR_W) oob = 1'b1;
    if (h_lut && 32'(h_slot) >= nx_cfg::SLOTS) oob = 1'b1;
  end
  assign bad = illegal ? 3'(nx_cfg::FAULT_ILLEGAL) : oob ? 3'(nx_cfg::FAULT_OOB) : '0;
  // ---- the running instruction
  logic run, two, lane, red_max, lut, mul, from_acc, a_in, b_in, d_in, div, across, var_, norm;
  logic [12:0] n;
  logic [7:0] slot, za, zb, zp, lo, hi;
  logic [11:0] n_ow, n_oh;
  logic [7:0] n_kw;
  logic [5:0] n_kh, sh;
  logic [13:0] s_ow, s_oh, s_kw, s_kh, s_bow, s_boh, s_cow, s_dow, s_doh;
  logic [30:0] ma;
  logic [23:0] mb;
  assign ready = !run;
  assign busy = run;
  always_ff @(posedge clk)
    if (rst) run <= 1'b0;
    else if (start) begin
      run <= 1'b1;
      two <= h_two;
      lane <= h_lane;
      red_max <= h_max;
      lut <= h_lut;
      mul <= h_mul;
      from_acc <= h_acc;
      a_in <= h_a_in;
      b_in <= h_b_in;
      d_in <= h_d_in;
      div <= h_div;
      across <= h_across;
      var_ <= h_var;
      norm <= h_norm;
      n <= h_n;
      slot <= h_slot;
      za <= h_za;
      zb <= h_zb;
      zp <= h_zp;
      lo <= h_lo;
      hi <= h_hi;
      n_ow <= h_ow;
      n_oh <= h_oh;
      n_kw <= h_kw;
      n_kh <= h_kh;
      sh <= h_sh;
      s_ow <= h_sow;
      s_oh <= h_soh;
      s_kw <= h_skw;
      s_kh <= h_skh;
      s_bow <= h_bow;
      s_boh <= h_boh;
      s_cow <= h_cow;
      s_dow <= h_dow;
      s_doh <= h_doh;
      ma <= h_ma;
      mb <= h_mb;
    end else if (retire) run <= 1'b0;
  // ---- parameters of the lanes
  logic par_run, par_v;
  logic [3:0] par_at;
  logic [9:0] par_ptr, p_base;
  logic norm_read;                     // norm reads its parameters as it goes
  logic [PAR_N*C*8-1:0] par;           // shift, multiplier, bias of every lane, last word on top
  assign par_re = par_run || norm_read;
  assign par_ra = par_ptr;
  always_ff @(posedge clk) begin
    par_v <= par_run;
    if (rst) par_run <= 1'b0;
    else if (start) begin
      par_run <= h_lane;
      par_ptr <= h_p;
      p_base <= h_p;
      par_at <= '0;
    end else if (par_run) begin
      par_ptr <= par_ptr + 1'b1;
      par_at <= par_at + 1'b1;
      if (par_at == 4'(PAR_N - 1)) par_run <= 1'b0;
    end else if (norm_read) par_ptr <= last_k && last_ow ? p_base : par_ptr + 1'b1;
    if (par_v) par <= {par_q, par[PAR_N*C*8-1:C*8]};
  end
  // ---- walker
  logic v0, walked, last_kw, last_k, last_ow, last_o;
  logic [7:0] kw;
  logic [5:0] kh;
  logic [11:0] ow, oh;
  logic [13:0] a_oh, a_ow, a_kh, a_kw, b_oh, b_ow, c_oh;
  assign last_kw = kw + 1'b1 == n_kw;
  assign last_k = last_kw && kh + 1'b1 == n_kh;
  assign last_ow = ow + 1'b1 == n_ow;
  assign last_o = last_ow && oh + 1'b1 == n_oh;
  assign v0 = run && !walked && !par_run && !par_v;
  assign step = !stall && !halt && !conflict;
  logic a_now;                         // norm reads its operand last
  assign a_now = v0 && !(norm && kw != 8'(NORM_N - 1));
  assign norm_read = v0 && norm && step;
  assign acc_want = v0 && (from_acc || div || (var_ && kw == '0) || (norm && kw < 8'd2));
  assign acc_ra = norm && kw[0] ? c_oh : div || var_ || norm ? b_ow : a_kw;
  assign in_want = a_now && (a_in || b_in);
  assign out0_want = a_now && !from_acc && !a_in;
  assign out1_want = v0 && two && !b_in;
  assign a_ra = a_kw;
  assign b_ra = b_ow;
  always_ff @(posedge clk)
    if (start) begin
      walked <= 1'b0;
      kw <= '0;
      kh <= '0;
      ow <= '0;
      oh <= '0;
      a_oh <= h_a;
      a_ow <= h_a;
      a_kh <= h_a;
      a_kw <= h_a;
      b_oh <= h_b;
      b_ow <= h_b;
      c_oh <= h_c;
    end else if (v0 && step) begin
      kw <= kw + 1'b1;
      a_kw <= a_kw + s_kw;
      if (last_kw) begin
        kw <= '0;
        kh <= kh + 1'b1;
        a_kh <= a_kh + s_kh;
        a_kw <= a_kh + s_kh;
      end
      if (last_k) begin
        kh <= '0;
        ow <= ow + 1'b1;
        a_ow <= a_ow + s_ow;
        a_kh <= a_ow + s_ow;
        a_kw <= a_ow + s_ow;
        b_ow <= b_ow + s_bow;
        if (last_ow) begin
          ow <= '0;
          oh <= oh + 1'b1;
          a_oh <= a_oh + s_oh;
          a_ow <= a_oh + s_oh;
          a_kh <= a_oh + s_oh;
          a_kw <= a_oh + s_oh;
          b_oh <= b_oh + s_boh;
          b_ow <= b_oh + s_boh;
          c_oh <= c_oh + s_cow;
        end
        if (last_o) walked <= 1'b1;
      end
    end
  // ---- pipeline
  logic v1, v2, v3, v3b, v4, v5, v6, first1, last1, fresh;
  logic [1:0] word1;                   // of norm's parameters
  logic signed [12:0] left1;           // lanes of this vector and of those behind it that belong to the row
  always_ff @(posedge clk) begin
    fresh <= v0 && step;
    if (rst || start) begin
      v1 <= 1'b0;
      v2 <= 1'b0;
      v3 <= 1'b0;
      v3b <= 1'b0;
      v4 <= 1'b0;
      v5 <= 1'b0;
      v6 <= 1'b0;
    end else if (step) begin
      v1 <= v0;
      first1 <= kw == '0 && kh == '0;
      last1 <= last_k;
      left1 <= 13'(n) - 13'(kw)*13'(C);
      word1 <= kw[1:0];
      v2 <= v1 && last1;
      v3 <= v2;
      v3b <= v3 && norm;
      v4 <= norm ? v3b : v3;
      v5 <= v4;
      v6 <= v5;
    end
  end
  logic [C*32-1:0] acc_word;
  logic [C*8-1:0] a_word, b_word;
  nx_hold #(.W(C*32)) hold_acc (.clk, .fresh, .q(acc_q), .d(acc_word));
  nx_hold #(.W(C*8)) hold_a (.clk, .fresh, .q(a_in ? in_q : out0_q), .d(a_word));
  nx_hold #(.W(C*8)) hold_b (.clk, .fresh, .q(b_in ? in_q : out1_q), .d(b_word));
  // the largest lane of a row so far
  logic [7:0] most;
  function automatic logic signed [7:0] next_most(input logic signed [7:0] so_far, input logic [C*8-1:0] v,
      input logic signed [12:0] left);
    next_most = so_far;
    for (int c = 0; c < C; c++)
      if (left > 13'(c) && $signed(v[c*8 +: 8]) > next_most) next_most = v[c*8 +: 8];
  endfunction
  always_ff @(posedge clk)
    if (step && v1 && across) most <= next_most(first1 ? 8'sh80 : most, a_word, left1);
  nx_var var_i (.clk, .step(step && var_), .v1, .first1, .v3, .v4, .v5, .a(a_word), .za, .sum(acc_word[31:0]), .n,
      .eps(ma[15:0]), .sh, .y(var_wd));
  // of a row, for norm: its sum, and 2**30 over the root of its variance by the eight bits below the leading one
  logic [15:0] rom [256];
  initial for (int i = 0; i < 256; i++) rom[i] = 16'(18172 + 17824398/(377 + i));
  function automatic logic [4:0] top(input logic [30:0] x);
    top = '0;
    for (int i = 0; i < 31; i++) if (x[i]) top = 5'(i);
  endfunction
  logic [31:0] row_sum, row_var, scaled;
  logic [30:0] row_root;
  logic [16:0] odd;                    // the root of two, where the place of the leading one is odd
  logic [4:0] at;
  logic none;
  logic [7:0] below;
  logic [C*8-1:0] par_word;
  nx_hold #(.W(C*8)) hold_par (.clk, .fresh(fresh && norm), .q(par_q), .d(par_word));
  assign odd = at[0] ? 17'd46341 : 17'd65536;
  assign scaled = 32'(rom[below])*32'(odd);
  always_ff @(posedge clk)
    if (step && v1 && norm)
      case (word1)
        2'd0: row_sum <= acc_word[31:0];
        2'd1: row_var <= acc_word[31:0];
        2'd2: begin
          none <= row_var[31] || row_var == '0;
          at <= top(row_var[30:0]);
          below <= 8'((row_var[30:0] << (5'd30 - top(row_var[30:0]))) >> 22);
        end
        default: row_root <= none ? '1 : 31'(scaled >> (at[4:1] + 5'd2));
      endcase
  for (genvar c = 0; c < C; c++) begin : g_lane
    // half of the lanes have their parameter in a word
    logic gain_now, plus_now;
    assign gain_now = v1 && norm && word1 == 2'(GAIN + 2*c/C);
    assign plus_now = v1 && norm && word1 == 2'(PLUS + 2*c/C);
    logic [31:0] p_mul;
    assign p_mul = par[MUL*C*8 + c*32 +: 32];
    nx_vlane lane_i (.clk, .step, .v1, .first(first1), .red_max, .from_acc, .acc(acc_word[c*32 +: 32]),
        .a(a_word[c*8 +: 8]), .b(b_word[c*8 +: 8]), .za, .zb, .v2, .across, .div, .two, .mul, .lane, .most,
        .norm, .gain_now, .plus_now, .p16(par_word[c%(C/2)*16 +: 16]), .n, .row_sum, .row_root, .v3b,
        .bias(par[BIAS*C*8 + c*32 +: 32]), .p_mul(p_mul[30:0]), .ma, .mb, .v3, .p_sh(par[SH*C*8 + c*8 +: 6]), .sh, .v4, .zp, .lo,
        .hi, .v5, .lut, .slot, .t_we, .t_wa, .t_wd, .y(wd[c*8 +: 8]));
    logic unused_par;
    assign unused_par = &{1'b0, p_mul[31], par[SH*C*8 + c*8 + 6 +: 2]};
  end
  // ---- write
  logic [11:0] w_ow, w_oh;
  logic [13:0] d_oh, d_ow;
  logic we;
  assign wr_want = v6;
  assign wr_in = d_in;
  assign wr_acc = var_;
  assign wa = d_ow;
  assign we = v6 && step;
  assign retire = we && w_ow + 1'b1 == n_ow && w_oh + 1'b1 == n_oh;
  always_ff @(posedge clk)
    if (start) begin
      w_ow <= '0;
      w_oh <= '0;
      d_oh <= h_d;
      d_ow <= h_d;
    end else if (we) begin
      w_ow <= w_ow + 1'b1;
      d_ow <= d_ow + s_dow;
      if (w_ow + 1'b1 == n_ow) begin
        w_ow <= '0;
        w_oh <= w_oh + 1'b1;
        d_oh <= d_oh + s_doh;
        d_ow <= d_oh + s_doh;
      end
    end
endmodule
