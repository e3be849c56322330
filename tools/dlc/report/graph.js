// The calls of the model from top to bottom. A row is one step away from the inputs; what is handed on over several rows
// goes along tracks at the right.
const kNode = {width: 236, height: 40, across: 18, down: 22}, kTrack = 12;

// Rows by the longest way from an input; what has no operand stands right above its first reader.
function placed(nodes, edges) {
  const before = nodes.map(() => []), after = nodes.map(() => []);
  for (const [a, b] of edges) { before[b].push(a); after[a].push(b); }
  const row = nodes.map(() => 0);  // nodes are in the order of execution
  nodes.forEach((_, i) => { for (const b of before[i]) row[i] = Math.max(row[i], row[b] + 1); });
  for (let i = nodes.length - 1; i >= 0; --i)
    if (!before[i].length && nodes[i].device !== "input" && after[i].length) row[i] = Math.max(0, Math.min(...after[i].map(a => row[a])) - 1);
  const taken = new Map(), column = [];
  nodes.forEach((_, i) => {
    const main = before[i].filter(b => b < i).sort((a, b) => row[b] - row[a] || column[a] - column[b])[0];
    let c = main === undefined ? 0 : column[main];
    const used = taken.get(row[i]) || new Set();
    while (used.has(c)) ++c;
    used.add(c);
    taken.set(row[i], used);
    column[i] = c;
  });
  return {row, column, after};
}

function showGraph() {
  const {nodes, edges} = data.graph;
  const s = section("graph", "Graph", "The calls that the model became, each of one or several of its nodes; those with a dashed frame run on the host.");
  const {row, column, after} = placed(nodes, edges);
  const columns = [];  // of each row
  nodes.forEach((_, i) => columns[row[i]] = Math.max(columns[row[i]] || 0, column[i] + 1));
  const x = i => column[i] * (kNode.width + kNode.across) + 8, y = i => row[i] * (kNode.height + kNode.down) + 8;

  // Each value that skips rows has a track of its own from its maker to its last reader, right of the nodes on its way.
  const edgeOf = (from, to) => Math.max(...columns.slice(from, to + 1)) * (kNode.width + kNode.across) + 4;
  const tracks = [], trackOf = new Map();
  nodes.forEach((_, i) => {
    const far = after[i].filter(a => row[a] > row[i] + 1);
    if (!far.length) return;
    const last = Math.max(...far.map(a => row[a]));
    let t = 0;
    while (tracks[t] > row[i]) ++t;
    tracks[t] = last;
    trackOf.set(i, edgeOf(row[i], last) + t * kTrack);
  });
  const width = Math.max(edgeOf(0, columns.length - 1), ...trackOf.values()) + 12, height = (Math.max(0, ...row) + 1) * (kNode.height + kNode.down);

  const lines = svg("g"), boxes = svg("g");
  for (const [a, b] of edges) {
    const fromX = x(a) + kNode.width / 2, toX = x(b) + kNode.width / 2, fromY = y(a) + kNode.height, toY = y(b);
    let d;
    if (row[b] === row[a] + 1) {
      const half = (fromY + toY) / 2;
      d = fromX === toX ? `M${fromX},${fromY} V${toY}` : `M${fromX},${fromY} C${fromX},${half + 6} ${toX},${half - 6} ${toX},${toY}`;
    } else {
      const side = trackOf.get(a), r = 6, out = fromY + 8, into = toY - 8;
      d = `M${fromX + 14},${fromY} V${out - r + 2} Q${fromX + 14},${out} ${fromX + 14 + r},${out} H${side - r} Q${side},${out} ${side},${out + r} ` +
          `V${into - r} Q${side},${into} ${side - r},${into} H${toX + 14 + r} Q${toX + 14},${into} ${toX + 14},${into + r} V${toY}`;
    }
    lines.append(svg("path", {class: "edge", d, "marker-end": "url(#arrow)"}));
  }
  const groups = [];
  nodes.forEach((n, i) => {
    const layer = n.layer === undefined ? -1 : n.layer, l = layer < 0 ? null : data.layers[layer];
    const isPort = n.device === "input" || n.device === "output";
    const fits = 32, name = n.name.length <= fits ? n.name : "\u2026" + n.name.slice(n.name.length - fits + 1);
    const more = l ? `${n.kernel}, ${count(l.end - l.begin)} cycles` : isPort ? `${n.device}, ${n.kernel}` : `${n.kernel}, ${n.device}`;
    const g = svg("g", {class: "node " + (isPort ? "port" : l || !data.machine ? "" : "host"), transform: `translate(${x(i)}, ${y(i)})`,
      onclick: () => { if (l) choose(layer); }, tip: () => `${n.name}\n${n.kernel} on ${n.device}` + (l ? `\n${l.plan}; tile ${l.tile}` : "")});
    g.append(svg("rect", {class: "box", width: kNode.width, height: kNode.height, rx: 6}));
    if (l) g.append(svg("rect", {x: 0, y: 8, width: 4, height: kNode.height - 16, style: `fill: ${colour(layer)}; stroke: none`}));
    g.append(svg("text", {x: 13, y: 17}, name), svg("text", {x: 13, y: 32, class: "soft"}, more));
    groups[i] = g;
    boxes.append(g);
  });
  s.append(html("div", {class: "scroll", style: "max-height: 720px"}, svg("svg", {id: "calls", width, height},
    svg("defs", {}, svg("marker", {id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto"},
      svg("path", {d: "M0,0.5 L7,4 L0,7.5", style: "fill: none; stroke: var(--host); stroke-width: 1.3"}))), lines, boxes)));
  onChoice.push(layer => nodes.forEach((n, i) => groups[i].classList.toggle("chosen", n.layer === layer)));
}
