// One pixel of the array: 8 accumulators, one for each output channel, that stay here for all taps of the pixel.
//
// conv: the pixel's next vector comes into `stage` while the one before it, in `live`, meets a weight word a step: step k
// adds live[k]*w[c] to accumulator c. Otherwise (depthwise, pools) lane c of the vector itself meets lane c of the weights.
module os_row (
    input  logic clk, conv,
    input  logic take, input logic [os_cfg::C-1:0][8:0] x,               // conv: a vector for stage
    input  logic swap, step, input logic [$clog2(os_cfg::C)-1:0] k,
    input  logic tap, first, largest, input logic [os_cfg::C-1:0][7:0] w,
    output logic [os_cfg::C-1:0][31:0] sums);                            // as they are after this cycle
  localparam int C = os_cfg::C;
  logic [C-1:0][8:0] stage, live;
  logic [C-1:0][31:0] acc;
  always_comb
    for (int c = 0; c < C; c++) begin
      logic signed [31:0] a, old, product;
      a = 32'($signed(conv ? live[k] : x[c]));
      old = first ? '0 : acc[c];
      product = a*32'($signed(w[c]));
      sums[c] = !largest ? old + product : first || a > old ? a : old;
    end
  always_ff @(posedge clk) begin
    if (take) stage <= x;
    if (swap) live <= stage;
    if (step || tap) acc <= sums;
  end
endmodule
