// The head of the page, and the table of layers.
function showSummary() {
  const machine = data.machine, totals = data.totals;
  document.title = "dlc report: " + data.model;
  const params = machine ? Object.entries(machine.params).map(([k, v]) => `${k}=${v}`).join(" ") : "";
  const how = data.device ? "run on " + data.device : "not run: cycles are predicted from the description";
  document.getElementById("header").append(
    html("h1", {}, data.model),
    html("p", {class: "under"}, "for ", html("b", {}, data.hardware), machine ? ` (${machine.arch_hash})` : "", ", ", how,
         data.bit_exact === undefined ? "" : data.bit_exact ? ", bit exact" : ", NOT bit exact"),
    html("p", {class: "under mono"}, params));
  if (!machine) return;
  const card = (label, value, more) =>
    html("div", {class: "card"}, html("div", {class: "label"}, label), html("div", {class: "value"}, value), html("div", {class: "more"}, more));
  const off = isMeasured ? (totals.predicted_cycles - totals.measured_cycles) / totals.measured_cycles : 0;
  const seconds = machine.hertz ? totalCycles / machine.hertz : 0;
  document.getElementById("summary").append(
    card("Cycles, " + (isMeasured ? "measured" : "predicted"), count(totalCycles),
         isMeasured ? `predicted ${count(totals.predicted_cycles)} (${signed(off)})`
                    : seconds ? `${(1e3 * seconds).toPrecision(3)} ms at ${machine.hertz / 1e9} GHz` : ""),
    card("MAC utilisation", percent(totals.mac_utilization), `${count(machine.macs_per_cycle)} MACs a cycle`),
    card("MACs", short(totals.macs), count(totals.macs)),
    card("Layers", count(data.layers.length), `${data.on_host.length} nodes on the host`),
    card("Instructions", count(totals.instructions), bytes(totals.stream_bytes)),
    card("Weights", bytes(totals.weight_bytes), `arena ${bytes(totals.arena_bytes)}`));
}

function showLayers() {
  if (!data.layers.length) return;
  const timed = data.machine !== undefined;
  const s = section("layers", "Layers", !timed ? "Milliseconds of each call of the host's code." :
    (isMeasured ? "Cycles as the simulation of the RTL counted them, beside those that the description predicts. "
                : "Cycles that the description predicts. ") +
    "A layer's time ends where the next one's begins, so that they sum to the run. Click on a layer to see it in time.");
  if (timed && isMeasured)
    s.append(html("p", {class: "legend"},
      html("span", {}, html("span", {class: "swatch", style: "background: var(--accent-soft)"}), "predicted"),
      html("span", {}, html("span", {class: "swatch", style: "background: var(--accent)"}), "measured")));
  const head = html("tr"), body = html("tbody");
  const columns = timed ? ["", "layer", "instructions from", "MACs", "predicted", ...(isMeasured ? ["measured", "off by"] : []), "cycles", "MAC utilisation"]
                        : ["layer", "kernel", "ms", "time"];
  const numbers = ["MACs", "predicted", "measured", "off by", "ms"];
  for (const c of columns) head.append(html("th", numbers.includes(c) ? {class: "number"} : {}, c));
  const shown = l => isMeasured ? l.measured_cycles : l.predicted_cycles;
  const most = Math.max(1e-9, ...data.layers.map(l => timed ? Math.max(l.predicted_cycles, shown(l)) : l.ms || 0));
  const share = (n, kind) => html("i", {class: kind, style: `width: ${100 * n / most}%`});
  const rows = [];
  data.layers.forEach((l, i) => {
    const row = html("tr", {onclick: () => choose(i)});
    if (!timed) {
      row.append(html("td", {class: "name"}, l.name), html("td", {class: "small mono"}, l.kernel || ""),
                 html("td", {class: "number"}, (l.ms || 0).toFixed(3)), html("td", {class: "wide"}, html("div", {class: "bar"}, share(l.ms || 0, ""))));
    } else {
      row.append(html("td", {class: "number small"}, i), html("td", {class: "name", title: l.name}, html("span", {class: "swatch", style: `background: ${colour(i)}`}), l.name),
                 html("td", {class: "small mono", title: l.tile}, l.plan), html("td", {class: "number"}, count(l.macs)),
                 html("td", {class: "number predicted"}, count(l.predicted_cycles)));
      if (isMeasured) {
        const off = l.measured_cycles ? (l.predicted_cycles - l.measured_cycles) / l.measured_cycles : 0;
        row.append(html("td", {class: "number measured"}, count(l.measured_cycles)),
                   html("td", {class: "number small" + (Math.abs(off) > 0.08 ? " off" : "")}, signed(off)));
      }
      row.append(html("td", {class: "wide"}, html("div", {class: "bar"}, share(l.predicted_cycles, isMeasured ? "behind" : ""), isMeasured ? share(l.measured_cycles, "front") : null)),
                 html("td", {class: "wide"}, l.macs ? html("div", {class: "with-number"},
                   html("div", {class: "bar"}, html("i", {style: `width: ${100 * l.utilization}%; background: var(--good)`})), html("span", {class: "utilization"}, percent(l.utilization))) : ""));
    }
    rows.push(row);
    body.append(row);
  });
  s.append(html("div", {class: "scroll"}, html("table", {}, html("thead", {}, head), body)));
  onChoice.push(layer => rows.forEach((r, i) => r.classList.toggle("chosen", i === layer)));
}

function showHost() {
  if (!data.on_host.length) return;
  const s = section("host", "On the host", "Nodes that the machine does not run, and why.");
  const body = html("tbody");
  for (const n of data.on_host)
    body.append(html("tr", {}, html("td", {class: "name", title: n.node}, n.node), html("td", {class: "small mono"}, n.op), html("td", {class: "small"}, n.why)));
  s.append(html("div", {class: "scroll", style: "max-height: 320px"},
    html("table", {}, html("thead", {}, html("tr", {}, ...["node", "op", "why"].map(c => html("th", {}, c)))), body)));
}

function showCells() {
  if (!data.cells.length) return;
  const s = section("cells", "Size of the RTL", "Cells of each configuration, as yosys counted them.");
  const types = [...new Set(data.cells.flatMap(c => Object.keys(c.by_type)))];
  const most = t => Math.max(...data.cells.map(c => c.by_type[t] || 0));
  types.sort((a, b) => most(b) - most(a));
  const cell = n => html("td", {class: "number"}, n === undefined ? "" : count(n));
  const body = html("tbody", {}, html("tr", {}, html("td", {}, html("b", {}, "all")), ...data.cells.map(c => cell(c.total))));
  for (const t of types) body.append(html("tr", {}, html("td", {class: "mono"}, t), ...data.cells.map(c => cell(c.by_type[t]))));
  s.append(html("div", {class: "scroll", style: "max-height: 320px"},
    html("table", {}, html("thead", {}, html("tr", {}, html("th", {}, "cell"), ...data.cells.map(c => html("th", {class: "number"}, c.configuration)))), body)));
}
