// A FIFO in registers, its head visible without a read; D is a power of two.
module os_fifo #(parameter int D = 4, parameter int W = 32) (
    input  logic clk, rst,
    input  logic push, input logic [W-1:0] d,
    input  logic pop, output logic [W-1:0] q, output logic empty, full);
  localparam int A = $clog2(D);
  logic [W-1:0] slots [D];
  logic [A-1:0] head, tail;
  logic [A:0] used;
  assign empty = used == '0;
  assign full = used == (A+1)'(D);
  assign q = slots[head];
  always_ff @(posedge clk) begin
    if (push) slots[tail] <= d;
    if (rst) begin
      head <= '0;
      tail <= '0;
      used <= '0;
    end else begin
      if (push) tail <= tail + 1'b1;
      if (pop) head <= head + 1'b1;
      used <= used + (A+1)'(push) - (A+1)'(pop);
    end
  end
`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst) begin
      a_overflow: assert (!(push && full));
      a_underflow: assert (!(pop && empty));
    end
`endif
endmodule
