// load: asks for the rows that lie inside the source, and writes their words and the fill value in the order of the loops.
module os_load (
    input  logic clk, rst, halt, stall, look, input logic [os_cfg::WORD-1:0] head,
    output logic ready, output logic [2:0] bad, input logic start, output logic retire, busy,
    output logic [2:0] seg, input logic [31:0] base,
    output logic req_v, output logic [31:0] req_addr, output logic [7:0] req_beats, input logic req_ack,
    input  logic beat_v, input logic [os_cfg::C*8-1:0] beat, output logic beat_ready,
    output logic we, output logic [1:0] to, output logic [12:0] wa, output logic [os_cfg::C*8-1:0] wd, input logic blocked);
  localparam int B = os_cfg::C;
  // ---- the instruction; it stays in these registers while it runs
  logic [21:0] off;
  logic [12:0] sp;
  logic [7:0] nx, ny, y1, x1, fill, inside_n;
  logic [5:0] nz;
  logic [11:0] sy;
  logic [15:0] sz;
  logic [3:0] py, px;
  logic [13:0] rows;
  logic [21:0] words;
  always_ff @(posedge clk)
    if (look) begin
      to <= head[os_cfg::LOAD_TO_L +: os_cfg::LOAD_TO_W];
      seg <= head[os_cfg::LOAD_SEG_L +: os_cfg::LOAD_SEG_W];
      off <= head[os_cfg::LOAD_OFF_L +: os_cfg::LOAD_OFF_W];
      sp <= head[os_cfg::LOAD_SP_L +: os_cfg::LOAD_SP_W];
      nx <= 8'(head[os_cfg::LOAD_NX_L +: os_cfg::LOAD_NX_W]) + 8'(os_cfg::LOAD_NX_P);
      ny <= 8'(head[os_cfg::LOAD_NY_L +: os_cfg::LOAD_NY_W]) + 8'(os_cfg::LOAD_NY_P);
      nz <= 6'(head[os_cfg::LOAD_NZ_L +: os_cfg::LOAD_NZ_W]) + 6'(os_cfg::LOAD_NZ_P);
      sy <= head[os_cfg::LOAD_SY_L +: os_cfg::LOAD_SY_W];
      sz <= head[os_cfg::LOAD_SZ_L +: os_cfg::LOAD_SZ_W];
      py <= head[os_cfg::LOAD_PY_L +: os_cfg::LOAD_PY_W];
      y1 <= head[os_cfg::LOAD_Y1_L +: os_cfg::LOAD_Y1_W];
      px <= head[os_cfg::LOAD_PX_L +: os_cfg::LOAD_PX_W];
      x1 <= head[os_cfg::LOAD_X1_L +: os_cfg::LOAD_X1_W];
      fill <= head[os_cfg::LOAD_FILL_L +: os_cfg::LOAD_FILL_W];
      rows <= 14'(nz)*14'(ny);
      inside_n <= nx <= 8'(px) ? '0 : nx - 8'(px) < x1 ? nx - 8'(px) : x1;
    end
  assign words = 22'(rows)*22'(nx);
  logic unused;
  assign unused = &{1'b0, head};
  logic [21:0] limit;
  always_comb
    case (32'(to))
      os_cfg::LOAD_TO_E_ACT: limit = 22'(os_cfg::ACT_W);
      os_cfg::LOAD_TO_E_WGT: limit = 22'(os_cfg::WGT_W);
      os_cfg::LOAD_TO_E_PAR: limit = 22'(os_cfg::PAR_WORDS);
      default:               limit = 22'(os_cfg::RES_W);
    endcase
  assign bad = 32'(seg) > os_cfg::LOAD_SEG_E_IO3 ? 3'(os_cfg::FAULT_ILLEGAL)
             : words + 22'(sp) > limit ? 3'(os_cfg::FAULT_OOB) : '0;
  // ---- requests
  logic asking;
  logic [7:0] a_y, left;
  logic [5:0] a_z;
  logic [31:0] row, plane;
  logic row_over, row_inside, last_row;
  os_burst burst (.addr(req_addr), .left, .beats(req_beats));
  assign row_inside = a_y >= 8'(py) && 9'(a_y) < 9'(py) + 9'(y1) && inside_n != '0;
  assign req_v = asking && row_inside && !halt;
  assign row_over = asking && !halt && (row_inside ? req_ack && req_beats == left : 1'b1);
  assign last_row = a_y + 1'b1 == ny;
  logic [31:0] next_row, next_plane;
  assign next_row = row + (32'(sy) << $clog2(B));
  assign next_plane = plane + (32'(sz) << $clog2(B));
  always_ff @(posedge clk)
    if (rst) asking <= 1'b0;
    else if (start) begin
      asking <= 1'b1;
      a_y <= '0;
      a_z <= '0;
      left <= inside_n;
      row <= base + (32'(off) << $clog2(os_cfg::LOAD_OFF_U));
      plane <= base + (32'(off) << $clog2(os_cfg::LOAD_OFF_U));
      req_addr <= base + (32'(off) << $clog2(os_cfg::LOAD_OFF_U));
    end else if (row_over) begin
      left <= inside_n;
      a_y <= last_row ? '0 : a_y + 1'b1;
      if (last_row) begin
        a_z <= a_z + 1'b1;
        row <= next_plane;
        plane <= next_plane;
        req_addr <= next_plane;
        if (a_z + 1'b1 == nz) asking <= 1'b0;
      end else if (row_inside) begin
        row <= next_row;
        req_addr <= next_row;
      end
    end else if (req_ack) begin
      left <= left - req_beats;
      req_addr <= req_addr + (32'(req_beats) << $clog2(B));
    end
  // ---- data
  logic run, in_source, step;
  logic [7:0] x, y;
  logic [5:0] z;
  assign ready = !run;
  assign busy = run;
  assign in_source = y >= 8'(py) && 9'(y) < 9'(py) + 9'(y1) && x >= 8'(px) && 9'(x) < 9'(px) + 9'(inside_n);
  assign step = run && !halt && !stall && !blocked;
  assign beat_ready = step && in_source;
  assign we = step && (!in_source || beat_v);
  assign wd = in_source ? beat : {B{fill}};
  assign retire = we && x + 1'b1 == nx && y + 1'b1 == ny && z + 1'b1 == nz;
  always_ff @(posedge clk)
    if (rst) run <= 1'b0;
    else if (start) begin
      run <= 1'b1;
      wa <= sp;
      x <= '0;
      y <= '0;
      z <= '0;
    end else if (we) begin
      wa <= wa + 1'b1;
      x <= x + 1'b1;
      if (x + 1'b1 == nx) begin
        x <= '0;
        y <= y + 1'b1;
        if (y + 1'b1 == ny) begin
          y <= '0;
          z <= z + 1'b1;
        end
      end
      if (retire) run <= 1'b0;
    end
endmodule
