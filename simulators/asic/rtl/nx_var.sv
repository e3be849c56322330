// The variance of rows of n elements, n*n times as large: n*(sum of squares + eps) - sum*sum, shifted.
//
// Stages: squares (1) | their sum (2) | variance (3) | shift (4) | (5). 1 and 2 take every vector, the others what a row
// gives.
module nx_var (
    input  logic clk, step, v1, first1, v3, v4, v5,
    input  logic [nx_cfg::C*8-1:0] a, input logic [7:0] za, input logic [31:0] sum, input logic [12:0] n,
    input  logic [15:0] eps, input logic [5:0] sh, output logic [31:0] y);
  localparam int C = nx_cfg::C;
  function automatic logic [16:0] square(input logic signed [7:0] v, zero);
    logic signed [17:0] d;
    d = 18'(v) - 18'(zero);
    square = 17'(d*d);
  endfunction
  function automatic logic [31:0] total_of(input logic [31:0] so_far, input logic [C-1:0][16:0] s);
    total_of = so_far;
    for (int c = 0; c < C; c++) total_of += 32'(s[c]);
  endfunction

  logic v2, first2;
  logic [C-1:0][16:0] squares;
  logic [31:0] sum1, sum2, total, y4;
  logic signed [63:0] variance;
  always_ff @(posedge clk)
    if (step) begin
      v2 <= v1;
      if (v1) begin
        for (int c = 0; c < C; c++) squares[c] <= square(a[c*8 +: 8], za);
        if (first1) sum1 <= sum;
        first2 <= first1;
      end
      if (v2) begin
        total <= total_of(first2 ? '0 : total, squares);
        if (first2) sum2 <= sum1;
      end
      if (v3)
        variance <= $signed({51'b0, n})*(64'(signed'(total)) + $signed({48'b0, eps})) - 64'(signed'(sum2))*64'(signed'(sum2));
      if (v4) y4 <= 32'(variance >>> sh);
      if (v5) y <= y4;
    end
endmodule
