// The token queues: a counter for each ordered pair. An instruction of queue q that pops p takes a token that p pushed to q.
module os_tokens (
    input  logic clk, rst,
    input  logic [os_cfg::NQ-1:0][os_cfg::NQ-1:0] pop, give, input logic [os_cfg::NQ-1:0] start,
    output logic [os_cfg::NQ-1:0] ok, overflow);
  localparam int N = os_cfg::NQ, B = os_cfg::TOK_BITS;
  logic [N-1:0][N-1:0][B-1:0] count;         // [from][to]
  logic [N-1:0][N-1:0] none, most, take;
  always_comb
    for (int from = 0; from < N; from++)
      for (int to = 0; to < N; to++) begin
        none[to][from] = count[from][to] == '0;
        most[from][to] = count[from][to] == '1;
        take[from][to] = start[to] && pop[to][from];
      end
  always_comb
    for (int q = 0; q < N; q++) begin
      ok[q] = (pop[q] & none[q]) == '0;
      overflow[q] = (give[q] & most[q] & ~take[q]) != '0;
    end
  always_ff @(posedge clk)
    for (int from = 0; from < N; from++)
      for (int to = 0; to < N; to++)
        if (rst) count[from][to] <= '0;
        else count[from][to] <= count[from][to] + B'(give[from][to]) - B'(take[from][to]);
`ifndef SYNTHESIS
  always_ff @(posedge clk)
    if (!rst)
      for (int q = 0; q < N; q++) a_underflow: assert (!start[q] || ok[q]);
`endif
endmodule
