// One of 8 lanes between the array and `res`: bias, multiplier, shift that rounds half away from zero, zero point, clamp;
// or the sum of two operands of different scale. Two registers, then the byte.
module os_lane (
    input  logic clk, v0, v1, add, plain,                 // plain: neither multiplier nor bias
    input  logic [31:0] x, input logic [8:0] y,
    input  logic [31:0] bias, input logic [31:0] mul, input logic [5:0] sh, input logic [7:0] zp, lo, hi,
    output logic [7:0] q);
  logic signed [63:0] t;
  logic signed [63:0] r;
  function automatic logic signed [63:0] away(input logic signed [63:0] v, input logic [5:0] s);
    away = s == '0 ? v : (v + (64'sd1 <<< (s - 6'd1)) + 64'($signed({v[63]}))) >>> s;
  endfunction
  always_ff @(posedge clk) begin
    if (v0) begin
      if (add) t <= 64'($signed(x))*$signed({40'b0, mul[23:0]}) + 64'($signed(y))*64'($signed(bias[23:0]));
      else if (plain) t <= 64'($signed(x));
      else t <= 64'($signed(x + bias))*$signed({33'b0, mul[30:0]});
    end
    if (v1) r <= (plain ? t : away(t, sh)) + 64'($signed(zp));
  end
  // the upper bound has the last word
  logic signed [63:0] low;
  assign low = r < 64'($signed(lo)) ? 64'($signed(lo)) : r;
  assign q = low > 64'($signed(hi)) ? hi : low[7:0];
  logic unused;
  assign unused = &{1'b0, mul[31]};
endmodule
