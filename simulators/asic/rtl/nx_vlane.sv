// One lane, from the raw operands to the byte before the write; `step` moves the whole pipeline. What a stage computes is
// a function, so that a simulation spends nothing on stages that are empty.
module nx_vlane (
    input  logic clk, step,
    input  logic v1, first, red_max, from_acc, input logic [31:0] acc, input logic [7:0] a, b, za, zb,
    input  logic v2, across, div, two, mul, lane, input logic [7:0] most, input logic [31:0] bias,
    input  logic [30:0] p_mul, ma, input logic [23:0] mb,
    input  logic norm, gain_now, plus_now, input logic [15:0] p16, input logic [12:0] n, input logic [31:0] row_sum, input logic [30:0] row_root,
    input  logic v3, v3b, input logic [5:0] p_sh, sh,
    input  logic v4, input logic [7:0] zp, lo, hi,
    input  logic v5, lut, input logic [7:0] slot,
    input  logic t_we, input logic [$clog2(nx_cfg::TAB_WORDS)-1:0] t_wa, input logic [nx_cfg::C*8-1:0] t_wd,
    output logic [7:0] y);
  localparam int LC = $clog2(nx_cfg::C);
  localparam int LT = $clog2(nx_cfg::TAB_WORDS);

  // 1: the window. 33 bits keep the maximum exact; a sum is taken modulo 2**32
  function automatic logic signed [32:0] next_fold(input logic signed [32:0] so_far, input logic start_it, take_max,
      input logic signed [31:0] v, input logic signed [7:0] zero);
    logic signed [32:0] d;
    d = 33'(v) - 33'(zero);
    next_fold = start_it ? d : !take_max ? so_far + d : d > so_far ? d : so_far;
  endfunction

  // 2: 2**30/x, by the eight bits below the leading one
  logic [15:0] rom [256];
  initial for (int i = 0; i < 256; i++) rom[i] = 16'(33554432/(513 + 2*i));
  function automatic logic [4:0] top(input logic [30:0] x);
    top = '0;
    for (int i = 0; i < 31; i++) if (x[i]) top = 5'(i);
  endfunction
  function automatic logic [30:0] recip(input logic [31:0] x);
    logic [4:0] at;
    logic [7:0] below;                 // the bits below the leading one
    at = top(x[30:0]);
    below = 8'((x[30:0] << (5'd30 - at)) >> 22);
    if (x[31] || x == '0) recip = '1;
    else if (at < 5'd14) recip = 31'(rom[below]) << (5'd14 - at);
    else recip = 31'(rom[below]) >> (at - 5'd14);
  endfunction

  // 4: round half to even, zero point, clamp
  function automatic logic [7:0] narrow(input logic signed [63:0] v, input logic [5:0] s,
      input logic signed [7:0] zero, low, high);
    logic signed [63:0] r;
    r = v;
    if (s != '0) begin
      r = v >>> s;
      r = (v + (64'sd1 <<< (s - 6'd1)) - 64'sd1 + $signed({63'b0, r[0]})) >>> s;
    end
    r = r + 64'(zero);
    if (r < 64'(low)) r = 64'(low);
    if (r > 64'(high)) r = 64'(high);
    narrow = r[7:0];
  endfunction

  logic signed [32:0] fold;
  logic signed [8:0] bz, bz_q;
  logic signed [31:0] x_q;
  logic signed [15:0] gain, gain_q, plus, plus_q;
  logic [31:0] d_q;                    // a divisor
  logic [30:0] r_x;                    // its reciprocal
  logic signed [63:0] t_q;
  logic [7:0] r_q, r_qq;
  // 5: the lane's own copy of the tables
  logic [nx_cfg::C*8-1:0] t_word;
  logic [LC-1:0] t_byte;
  dlc_sram #(.D(nx_cfg::TAB_WORDS), .W(nx_cfg::C*8)) copy (.clk, .we(t_we), .wa(t_wa), .wd(t_wd), .re(step && v5 && lut),
      .ra(LT'({slot, r_q[7:LC] ^ {1'b1, {(7-LC){1'b0}}}})), .rd(t_word));
  assign y = lut ? t_word[t_byte*8 +: 8] : r_qq;
  always_ff @(posedge clk) begin
    if (step) begin
      if (v1) begin
        fold <= next_fold(fold, first || norm, red_max, from_acc ? acc : 32'(signed'(a)), za);
        bz <= 9'(signed'(b)) - 9'(signed'(zb));
        if (div) d_q <= acc;
        if (gain_now) gain <= p16;
        if (plus_now) plus <= p16;
      end
      if (v2) begin
        if (across) x_q <= 32'(signed'(most));
        else if (norm) begin
          x_q <= 32'(signed'(fold[8:0]))*$signed({19'b0, n}) - row_sum;
          gain_q <= gain;
          plus_q <= plus;
        end else if (div || two)
          x_q <= 32'(signed'(fold[8:0]))*(div ? $signed({16'b0, ma[15:0]}) : mul ? 32'(bz) : 32'sd1);
        else x_q <= fold[31:0] + (lane ? bias : '0);
        if (div) r_x <= recip(d_q);
        bz_q <= bz;
      end
      if (v3b) t_q <= 64'(signed'(t_q[47:16]))*64'(gain_q) + 64'(plus_q)*$signed({40'b0, mb});
      else if (v3) t_q <= 64'(x_q)*$signed({33'b0, norm ? row_root : div ? r_x : lane ? p_mul : ma})
                        + (two && !mul ? 64'(bz_q)*64'(signed'(mb)) : '0);
      if (v4) r_q <= narrow(t_q, lane ? p_sh : sh, zp, lo, hi);
      if (v5) begin
        r_qq <= r_q;
        t_byte <= r_q[LC-1:0];
      end
    end
  end
endmodule
