// Counting semaphores. A start takes one from each in its wait mask, a retire gives one to each in its signal mask.
// Only one queue may ever wait on a semaphore; the first that does owns it until reset or start.
module nx_sem (
    input  logic clk, rst,
    input  logic [3:0][nx_cfg::NSEM-1:0] wai, give, input logic [3:0] start,
    output logic [3:0] ok, conflict, overflow);
  localparam int S = nx_cfg::NSEM, B = nx_cfg::SEM_BITS, MOST = 2**B - 1;
  localparam int N = B + 2;            // a sum before it is found too large
  logic [3:0][S-1:0] own;
  logic [S-1:0] some, take;
  logic [B-1:0] count [S];
  for (genvar i = 0; i < 4; i++) begin : g
    assign ok[i] = (wai[i] & ~some) == '0;
    assign conflict[i] = (wai[i] & ~own[i] & (own[(i+1)%4] | own[(i+2)%4] | own[(i+3)%4]
                                             | wai[(i+1)%4] | wai[(i+2)%4] | wai[(i+3)%4])) != '0;
  end
  assign take = (start[0] ? wai[0] : '0) | (start[1] ? wai[1] : '0) | (start[2] ? wai[2] : '0) | (start[3] ? wai[3] : '0);
  logic any;
  assign any = start != '0 || give != '0;
  always_comb begin
    overflow = '0;
    if (give != '0)
      for (int s = 0; s < S; s++)
        if (N'(count[s]) + N'(give[0][s]) + N'(give[1][s]) + N'(give[2][s]) + N'(give[3][s]) - N'(take[s]) > N'(MOST))
          for (int i = 0; i < 4; i++)
            if (give[i][s]) overflow[i] = 1'b1;
  end
  always_ff @(posedge clk)
    if (rst) begin
      own <= '0;
      some <= '0;
      for (int s = 0; s < S; s++) count[s] <= '0;
    end else begin
      own <= own | wai;
      if (any)
        for (int s = 0; s < S; s++) begin
          count[s] <= count[s] + B'(give[0][s]) + B'(give[1][s]) + B'(give[2][s]) + B'(give[3][s]) - B'(take[s]);
          some[s] <= B'(count[s] + B'(give[0][s]) + B'(give[1][s]) + B'(give[2][s]) + B'(give[3][s]) - B'(take[s])) != '0;
        end
    end
`ifndef SYNTHESIS
  always_ff @(posedge clk) if (!rst) a_underflow: assert ((take & ~some) == '0);
`endif
endmodule
