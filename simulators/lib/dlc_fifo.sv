// A FIFO in registers whose head is visible without a read; D is a power of two, 2 or more.
module dlc_fifo #(parameter int D = 4, parameter int W = 32) (
    input  logic clk, rst,
    input  logic push, input logic [W-1:0] d,
    input  logic pop, output logic [W-1:0] q, output logic empty, full);
  localparam int A = $clog2(D);
  logic [W-1:0] m [D];
  logic [A:0] w, r;
  assign empty = w == r;
  assign full = w - r == (A+1)'(D);
  assign q = m[r[A-1:0]];
  always_ff @(posedge clk)
    if (rst) begin
      w <= '0;
      r <= '0;
    end else begin
      if (push) begin
        m[w[A-1:0]] <= d;
        w <= w + 1'b1;
      end
      if (pop) r <= r + 1'b1;
    end
`ifndef SYNTHESIS
  if (D < 2 || D != 2**A) $error("the depth of a FIFO is a power of two");
  always_ff @(posedge clk)
    if (!rst) begin
      a_overflow: assert (!(push && full));
      a_underflow: assert (!(pop && empty));
    end
`endif
endmodule
