// Queues and memories over one axis of cycles. What would be narrower than a pixel is drawn together with its neighbours
// of the same layer, so that a whole run and a few instructions are both quick to draw.
const kGutter = 132, kLayerRow = 30, kQueueRow = 34, kMemoryRow = 76, kSmallRow = 30, kGap = 8, kAxis = 22;

// The instructions of each track of each queue, in order of their start; and each queue's share of time with any.
function tracksOfQueues() {
  const {queue, lane, start, retire} = data.instructions;
  const queues = data.machine.queues.map(name => ({name, lanes: [], busy: 0}));
  const order = start.map((_, i) => i).filter(i => queue[i] >= 0).sort((a, b) => start[a] - start[b]);
  const until = queues.map(() => 0);
  for (const i of order) {
    const q = queues[queue[i]];
    (q.lanes[lane[i]] ||= []).push(i);
    q.busy += Math.max(0, retire[i] - Math.max(start[i], until[queue[i]]));
    until[queue[i]] = Math.max(until[queue[i]], retire[i]);
  }
  return queues;
}

// Boxes {x0, x1, low, high, layer, first, n} of things with a time and, in memories, an extent.
function joined(things, x, width) {
  const boxes = [], open = new Map();
  for (const t of things) {
    const x0 = Math.max(x(t.begin), 0), x1 = Math.min(x(t.end), width);
    if (x1 < 0 || x0 > width || x1 < x0) continue;
    const last = open.get(t.layer);
    if (last && x1 - x0 < 3 && x0 - last.x1 < 0.8) {
      last.x1 = Math.max(last.x1, x1);
      last.low = Math.min(last.low, t.low);
      last.high = Math.max(last.high, t.high);
      last.n += 1;
    } else {
      const box = {x0, x1, low: t.low, high: t.high, layer: t.layer, first: t.instruction, n: 1};
      open.set(t.layer, box);
      boxes.push(box);
    }
  }
  return boxes;
}

function tellInstruction(box) {
  const {queue, tile, start, retire} = data.instructions, i = box.first;
  const name = box.layer < 0 ? "" : data.layers[box.layer].name + "\n";
  const from = box.n > 1 ? `${box.n} from instruction ${i}` : `instruction ${i}`;
  return `${name}${data.machine.queues[queue[i]]}, ${from}, tile ${tile[i]}\ncycles ${count(start[i])} to ${count(retire[i])}` +
    (box.n > 1 ? " (the first)" : "");
}

function showTime() {
  if (!data.instructions) return;
  const s = section("time", "Queues and memories over time",
    `${isMeasured ? "Measured" : "Predicted"} times of every instruction. A queue has several tracks where instructions overlap. In a memory the ` +
    "height is the address: a box is what an instruction wrote, from then until it was last read. Drag to look closer, double-click to see all.");
  const queues = tracksOfQueues();
  const {layer, start, retire} = data.instructions;
  const lanes = queues.map(q => q.lanes.map(list => list.map(i =>
    ({begin: start[i], end: retire[i], low: 0, high: 1, layer: layer[i], instruction: i}))));
  const memories = data.memories.map(m => m.regions.map(([low, high, begin, end, instruction]) =>
    ({low, high, begin, end, instruction, layer: layer[instruction]})));

  let from = 0, to = totalCycles;
  const span = html("span", {class: "span"});
  const plot = svg("svg", {id: "plot"});
  const zoom = factor => look((from + to) / 2 - (to - from) * factor / 2, (from + to) / 2 + (to - from) * factor / 2);
  const move = share => { const by = (to - from) * share; look(from + by, to + by); };
  s.append(html("div", {class: "tools"},
    html("button", {onclick: () => look(0, totalCycles)}, "whole run"), html("button", {onclick: () => zoom(0.5)}, "closer"),
    html("button", {onclick: () => zoom(2)}, "wider"), html("button", {onclick: () => move(-0.5)}, "earlier"), html("button", {onclick: () => move(0.5)}, "later"), span), plot);

  function look(a, b) {
    const length = Math.min(Math.max(b - a, 20), totalCycles);
    from = Math.max(0, Math.min(a, totalCycles - length));
    to = from + length;
    draw();
  }

  function draw() {
    const width = Math.max(s.clientWidth - 40 - kGutter, 200);
    const x = t => (t - from) / (to - from) * width;
    const rows = svg("g", {transform: `translate(${kGutter}, 0)`}), labels = svg("g");
    let y = kAxis;
    const label = (text, more, height) => labels.append(
      svg("text", {x: 0, y: y + height / 2 + (more ? -2 : 4)}, text), more ? svg("text", {x: 0, y: y + height / 2 + 13, class: "soft"}, more) : null);
    const background = height => rows.append(svg("rect", {class: "row", x: 0, y, width, height, rx: 3}));
    const box = (b, top, height, what, tell) => {
      const w = Math.max(b.x1 - b.x0 - (b.x1 - b.x0 > 4 ? 0.6 : 0), 0.6);
      rows.append(svg("rect", {class: what, x: b.x0.toFixed(2), y: top.toFixed(2), width: w.toFixed(2), height: Math.max(height, 1).toFixed(2),
        fill: colour(b.layer), rx: w > 6 && height > 6 ? 2 : 0, tip: () => tell(b)}));
    };

    label("layers", "height: MACs", kLayerRow);
    background(kLayerRow);
    data.layers.forEach((l, i) => {
      const x0 = Math.max(x(l.begin), 0), x1 = Math.min(x(l.end), width);
      if (x1 <= x0) return;
      const tell = () => `${l.name}\n${l.plan}; tile ${l.tile}\n${count(l.end - l.begin)} cycles, ${count(l.macs)} MACs, utilisation ${percent(l.utilization)}`;
      const g = svg("g", {onclick: () => choose(i), tip: tell});
      g.append(svg("rect", {x: x0, y, width: Math.max(x1 - x0 - 0.6, 0.6), height: kLayerRow, fill: colour(i), opacity: 0.3}),
               svg("rect", {class: "layer", x: x0, y: y + kLayerRow * (1 - l.utilization), width: Math.max(x1 - x0 - 0.6, 0.6), height: kLayerRow * l.utilization, fill: colour(i)}));
      const fits = Math.floor((x1 - x0 - 8) / 6.4);
      if (fits >= 3) g.append(svg("text", {class: l.utilization > 0.45 ? "inside" : "", style: "font-size: 11px", x: x0 + 5, y: y + kLayerRow / 2 + 4},
        l.name.length <= fits ? l.name : l.name.slice(0, fits - 1) + "\u2026"));
      rows.append(g);
    });
    y += kLayerRow + kGap;

    queues.forEach((q, index) => {
      label(q.name, percent(q.busy / totalCycles) + " busy", kQueueRow);
      background(kQueueRow);
      const height = kQueueRow / Math.max(q.lanes.length, 1);
      lanes[index].forEach((list, lane) => {
        for (const b of joined(list, x, width)) box(b, y + lane * height, height - (q.lanes.length > 1 ? 0.5 : 0), "instruction", tellInstruction);
      });
      y += kQueueRow + kGap;
    });

    data.memories.forEach((m, index) => {
      const height = m.words > 8 && m.regions.length > data.layers.length ? kMemoryRow : kSmallRow;
      label(m.name, `${bytes(m.used_words * m.word_bytes)} of ${bytes(m.words * m.word_bytes)}`, height);
      background(height);
      const scale = height / m.words;
      for (const b of joined(memories[index], x, width))
        box(b, y + height - b.high * scale, (b.high - b.low) * scale, "region", b => `${m.name}, words ${count(b.low)} to ${count(b.high - 1)}\n` + tellInstruction(b));
      y += height + kGap;
    });

    const axis = svg("g");
    const rough = (to - from) / 8, power = 10 ** Math.floor(Math.log10(rough));
    const step = Math.max(1, power * [1, 2, 5, 10].find(f => power * f >= rough));
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      axis.append(svg("line", {class: "grid", x1: kGutter + x(t), x2: kGutter + x(t), y1: kAxis - 5, y2: y - kGap}),
                  svg("text", {class: "soft", x: kGutter + x(t), y: 11, "text-anchor": t === 0 ? "start" : x(t) > width - 30 ? "end" : "middle"}, short(Math.round(t))));
    }
    plot.setAttribute("width", kGutter + width);
    plot.setAttribute("height", y);
    plot.replaceChildren(axis, labels, rows);
    span.textContent = `cycles ${count(Math.round(from))} to ${count(Math.round(to))} of ${count(totalCycles)}`;
  }

  let begun = null, mark = null;
  const at = event => Math.max(event.clientX - plot.getBoundingClientRect().left - kGutter, 0);
  plot.addEventListener("mousedown", event => {
    begun = at(event);
    mark = svg("rect", {class: "select", x: kGutter + begun, y: kAxis, width: 0, height: plot.getAttribute("height") - kAxis});
    plot.append(mark);
    event.preventDefault();
  });
  addEventListener("mousemove", event => {
    if (begun === null) return;
    mark.setAttribute("x", kGutter + Math.min(begun, at(event)));
    mark.setAttribute("width", Math.abs(at(event) - begun));
  });
  addEventListener("mouseup", event => {
    if (begun === null) return;
    const a = Math.min(begun, at(event)), b = Math.max(begun, at(event)), width = plot.getAttribute("width") - kGutter;
    begun = null;
    mark.remove();
    if (b - a > 4) look(from + a / width * (to - from), from + b / width * (to - from));
  });
  plot.addEventListener("dblclick", () => look(0, totalCycles));
  onChoice.push(i => {
    const l = data.layers[i], around = (l.end - l.begin) * 0.15 + 20;
    look(l.begin - around, l.end + around);
  });
  addEventListener("resize", draw);
  draw();
}
