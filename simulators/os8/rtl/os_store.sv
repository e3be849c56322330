// store: reads `res` in the order of the loops and writes bursts, one at a time; retires when all are answered. It has the
// write half of the bus to itself. When the machine stops, the beats that are owed go out without a strobe.
module os_store (
    input  logic clk, rst, halt, stall, look, input logic [os_cfg::WORD-1:0] head, input logic others_idle,
    output logic ready, output logic [2:0] bad, input logic start, output logic retire, ended, busy, idle, error,
    output logic [2:0] seg, input logic [31:0] base,
    output logic re, output logic [11:0] ra, input logic [os_cfg::C*8-1:0] rd,
    output logic awvalid, input logic awready, output logic [39:0] awaddr, output logic [7:0] awlen,
    output logic wvalid, input logic wready, output logic [os_cfg::C*8-1:0] wdata, output logic [os_cfg::C-1:0] wstrb,
    output logic wlast, input logic bvalid, output logic bready, input logic [1:0] bresp);
  localparam int B = os_cfg::C;
  logic [21:0] off;
  logic [11:0] sp, sy;
  logic [7:0] nx, ny;
  logic [5:0] nz;
  logic [15:0] sz;
  logic [13:0] rows;
  logic [21:0] words;
  logic is_end;
  assign is_end = 32'(head[os_cfg::OP_L +: os_cfg::OP_W]) == os_cfg::OP_END;
  always_ff @(posedge clk)
    if (look) begin
      seg <= head[os_cfg::STORE_SEG_L +: os_cfg::STORE_SEG_W];
      off <= head[os_cfg::STORE_OFF_L +: os_cfg::STORE_OFF_W];
      sp <= head[os_cfg::STORE_SP_L +: os_cfg::STORE_SP_W];
      nx <= 8'(head[os_cfg::STORE_NX_L +: os_cfg::STORE_NX_W]) + 8'(os_cfg::STORE_NX_P);
      ny <= 8'(head[os_cfg::STORE_NY_L +: os_cfg::STORE_NY_W]) + 8'(os_cfg::STORE_NY_P);
      nz <= 6'(head[os_cfg::STORE_NZ_L +: os_cfg::STORE_NZ_W]) + 6'(os_cfg::STORE_NZ_P);
      sy <= head[os_cfg::STORE_SY_L +: os_cfg::STORE_SY_W];
      sz <= head[os_cfg::STORE_SZ_L +: os_cfg::STORE_SZ_W];
      rows <= 14'(nz)*14'(ny);
    end
  assign words = 22'(rows)*22'(nx);
  logic unused;
  assign unused = &{1'b0, head};
  assign bad = is_end ? '0 : 32'(seg) > os_cfg::STORE_SEG_E_IO3 ? 3'(os_cfg::FAULT_ILLEGAL)
             : words + 22'(sp) > 22'(os_cfg::RES_W) ? 3'(os_cfg::FAULT_OOB) : '0;
  // ---- reader: as far ahead as there are places for words
  logic run, got, f_empty, beat, unused_full;
  logic [12:0] to_read;
  logic [2:0] held;
  logic [B*8-1:0] word;
  dlc_fifo #(.D(4), .W(B*8)) ahead (.clk, .rst, .push(got), .d(rd), .pop(beat && !f_empty), .q(word), .empty(f_empty),
      .full(unused_full));
  assign re = run && to_read != '0 && held != 3'd4 && !halt && !stall;
  always_ff @(posedge clk)
    if (rst) begin
      got <= 1'b0;
      held <= '0;
      to_read <= '0;
    end else begin
      got <= re;
      held <= held + 3'(re) - 3'(beat && !f_empty);
      if (start && !is_end) begin
        to_read <= words[12:0];
        ra <= sp;
      end else if (re) begin
        to_read <= to_read - 1'b1;
        ra <= ra + 1'b1;
      end
    end
  // ---- bursts
  logic rows_left, announce, row_over;
  logic [31:0] addr, row, plane, next_row, next_plane;
  logic [7:0] left, beats, owed, y;
  localparam int N = $clog2(os_cfg::STORE_OPEN + 1), EDGE = $clog2(os_cfg::DRAM_BOUNDARY);
  logic [5:0] z;
  logic [N-1:0] open;
  os_burst burst (.addr, .left, .beats);
  assign announce = rows_left && owed == '0 && !awvalid && open != N'(os_cfg::STORE_OPEN) && !halt;
  assign row_over = announce && beats == left;
  assign next_row = row + (32'(sy) << $clog2(B));
  assign next_plane = plane + (32'(sz) << $clog2(B));
  assign beat = owed != '0 && (!f_empty || halt) && (!wvalid || wready);
  assign bready = 1'b1;
  assign error = bvalid && bresp != '0;
  assign idle = !awvalid && !wvalid && owed == '0 && open == '0;
  assign ready = is_end ? others_idle && !run : !run;
  assign busy = run;
  assign retire = ended || (run && !rows_left && idle && !halt);
  always_ff @(posedge clk)
    if (rst) begin
      run <= 1'b0;
      ended <= 1'b0;
      rows_left <= 1'b0;
      awvalid <= 1'b0;
      wvalid <= 1'b0;
      owed <= '0;
      open <= '0;
    end else begin
      ended <= start && is_end;
      open <= open + N'(announce) - N'(bvalid);
      if (awvalid && awready) awvalid <= 1'b0;
      if (announce) begin
        awvalid <= 1'b1;
        awaddr <= {8'b0, addr};
        awlen <= beats - 1'b1;
        owed <= beats;
        addr <= addr + (32'(beats) << $clog2(B));
        left <= left - beats;
      end
      if (row_over) begin
        left <= nx;
        y <= y + 1'b1;
        row <= next_row;
        addr <= next_row;
        if (y + 1'b1 == ny) begin
          y <= '0;
          z <= z + 1'b1;
          row <= next_plane;
          plane <= next_plane;
          addr <= next_plane;
          if (z + 1'b1 == nz) rows_left <= 1'b0;
        end
      end
      if (beat) begin
        wvalid <= 1'b1;
        wdata <= word;
        wstrb <= {B{!f_empty && !halt}};
        wlast <= owed == 8'd1;
        owed <= owed - 1'b1;
      end else if (wready) wvalid <= 1'b0;
      if (start && !is_end) begin
        run <= 1'b1;
        rows_left <= 1'b1;
        left <= nx;
        y <= '0;
        z <= '0;
        row <= base + (32'(off) << $clog2(os_cfg::STORE_OFF_U));
        plane <= base + (32'(off) << $clog2(os_cfg::STORE_OFF_U));
        addr <= base + (32'(off) << $clog2(os_cfg::STORE_OFF_U));
      end else if (retire) run <= 1'b0;
    end
`ifndef SYNTHESIS
  logic aw_held, w_held;
  logic [47:0] aw_was;
  logic [B*9:0] w_was;
  always_ff @(posedge clk) begin
    aw_held <= !rst && awvalid && !awready;
    w_held <= !rst && wvalid && !wready;
    aw_was <= {awaddr, awlen};
    w_was <= {wlast, wstrb, wdata};
    if (!rst) begin
      if (aw_held) a_stable: assert (awvalid && aw_was == {awaddr, awlen});
      if (w_held) a_wstable: assert (wvalid && w_was == {wlast, wstrb, wdata});
      if (awvalid) a_4k: assert (32'(awaddr[EDGE-1:0]) + (32'(awlen) + 1)*B <= os_cfg::DRAM_BOUNDARY);
      if (bvalid) a_expected: assert (open != '0);
    end
  end
`endif
endmodule
