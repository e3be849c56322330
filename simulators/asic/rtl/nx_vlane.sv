// One lane, from the raw operands to the byte before the write; `step` moves the whole pipeline.
module nx_vlane (
    input  logic clk, step,
    input  logic v1, first, last, red_max, input logic [31:0] a, input logic [7:0] b, za, zb,
    input  logic v2, two, mul, lane, input logic [31:0] bias, input logic [30:0] p_mul, ma, input logic [23:0] mb,
    input  logic v3, input logic [5:0] p_sh, sh,
    input  logic v4, input logic [7:0] zp, lo, hi,
    input  logic v5, lut, input logic [7:0] slot,
    input  logic t_we, input logic [$clog2(nx_cfg::SLOTS*256/nx_cfg::C)-1:0] t_wa, input logic [nx_cfg::C*8-1:0] t_wd,
    output logic [7:0] y);
  localparam int TW = nx_cfg::SLOTS*256/nx_cfg::C;
  localparam int LC = $clog2(nx_cfg::C);
  // 1: the window. 33 bits keep the maximum exact; a sum is taken modulo 2**32
  logic signed [32:0] d, fold, fold_next;
  logic signed [8:0] bz;
  assign d = 33'(signed'(a)) - 33'(signed'(za));
  assign fold_next = first ? d : red_max ? (d > fold ? d : fold) : fold + d;
  // 2: what is multiplied
  logic signed [31:0] x, x_q;
  logic signed [8:0] bz_q;
  assign x = two ? 32'(signed'(fold[8:0]))*(mul ? 32'(bz) : 32'sd1) : fold[31:0] + (lane ? bias : '0);
  // 3: 64-bit product
  logic signed [63:0] t, t_q;
  assign t = 64'(x_q)*$signed({33'b0, lane ? p_mul : ma}) + (two && !mul ? 64'(bz_q)*64'(signed'(mb)) : '0);
  // 4: round half to even, zero point, clamp
  logic [5:0] s;
  logic signed [63:0] half, shifted;
  logic signed [63:0] r, low;
  logic [7:0] r_q, r_qq;
  assign s = lane ? p_sh : sh;
  assign half = (64'sd1 <<< (s - 6'd1)) - 64'sd1 + $signed({63'b0, t_q[s]});
  assign shifted = s == '0 ? t_q : (t_q + half) >>> s;
  assign r = shifted + 64'(signed'(zp));
  assign low = r < 64'(signed'(lo)) ? 64'(signed'(lo)) : r;
  // 5: the lane's own copy of the table
  logic [nx_cfg::C*8-1:0] t_word;
  logic [LC-1:0] t_byte;
  logic [$clog2(nx_cfg::SLOTS*256)-1:0] index;
  assign index = $clog2(nx_cfg::SLOTS*256)'({slot, r_q ^ 8'h80});
  nx_sram #(.D(TW), .W(nx_cfg::C*8)) table_copy (.clk, .we(t_we), .wa(t_wa), .wd(t_wd), .re(v5 && lut && step),
      .ra(index[$clog2(nx_cfg::SLOTS*256)-1:LC]), .rd(t_word));
  assign y = lut ? t_word[t_byte*8 +: 8] : r_qq;
  always_ff @(posedge clk)
    if (step) begin
      if (v1) begin
        fold <= fold_next;
        if (last) bz <= 9'(signed'(b)) - 9'(signed'(zb));
      end
      if (v2) begin
        x_q <= x;
        bz_q <= bz;
      end
      if (v3) t_q <= t;
      if (v4) r_q <= low > 64'(signed'(hi)) ? hi : low[7:0];
      if (v5) begin
        r_qq <= r_q;
        t_byte <= index[LC-1:0];
      end
    end
endmodule
