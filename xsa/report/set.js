// Draws the figures from the JSON in #data, each as one plot of several panels, and saves them.
(() => {
  const figures = JSON.parse(document.getElementById('data').textContent);
  const symbols = ['circle', 'square', 'triangle-up', 'x', 'star', 'hexagon'];
  const dashes = ['solid', 'dash', 'dot', 'dashdot', 'longdash', 'longdashdot'];
  const config = {responsive: false, displaylogo: false, modeBarButtons: [['zoom2d', 'pan2d', 'resetScale2d']]};
  const panelHeight = 250, gapAbove = 62, legendHeight = 34;

  function look(style) {
    const [kind, number] = style.split(':');
    const symbol = number && symbols[Number(number) % 6];
    if (kind === 'standard') return {color: colour('standard'), dash: 'dash', symbol: symbol || 'circle'};
    if (kind === 'exclusive') return {color: colour('exclusive'), dash: 'solid', symbol: symbol || 'diamond'};
    if (style === 'margin') return {color: colour('neutral'), dash: 'solid', symbol: 'square'};
    const i = Number(style);
    return {color: colour('series-' + (i % 6)), dash: dashes[i % 6], symbol: symbols[i % 6]};
  }

  // "xy", "x2y2", ... and the names that a layout gives these axes.
  const axes = (index) => ({x: index ? 'x' + (index + 1) : 'x', y: index ? 'y' + (index + 1) : 'y'});
  const axisKey = (axis) => axis[0] + 'axis' + axis.slice(1);

  function errorBars(trace, color) {
    if (!trace.low || !trace.low.some((low) => low !== null)) return undefined;
    const away = (ends, sign) => ends.map((end, i) => (end === null || trace.y[i] === null ? 0 : sign * (end - trace.y[i])));
    return {type: 'data', symmetric: false, array: away(trace.high, 1), arrayminus: away(trace.low, -1), color, thickness: 1.4, width: 4};
  }

  function plotTrace(trace, index, named) {
    const {color, dash, symbol} = look(trace.style);
    const axis = axes(index);
    const shared = {
      name: trace.name, x: trace.x, y: trace.y, xaxis: axis.x, yaxis: axis.y, legendgroup: trace.name,
      showlegend: !named.has(trace.name), error_y: errorBars(trace, colour('ink')), hovertemplate: '%{y:.4~f}<extra>' + '%{fullData.name}' + '</extra>',
    };
    named.add(trace.name);
    if (trace.kind === 'bar') return {...shared, type: 'bar', marker: {color, pattern: {shape: trace.style.startsWith('standard') ? '/' : '', solidity: .2, fillmode: 'overlay', fgcolor: colour('card')}}};
    const thin = trace.kind === 'thin';
    const error = shared.error_y && {...shared.error_y, color};
    return {...shared, error_y: error, type: 'scatter', mode: thin ? 'lines' : trace.kind === 'points' ? 'markers' : 'lines+markers', opacity: thin ? .45 : 1,
      line: {color, dash, width: thin ? 1.2 : 2.2}, marker: {color, symbol, size: trace.kind === 'points' ? 10 : trace.x.length > 30 ? 4 : 7}};
  }

  function heatTrace(panel, index, range, last) {
    const axis = axes(index);
    return {type: 'heatmap', z: panel.heat, xaxis: axis.x, yaxis: axis.y, zmin: range[0], zmax: range[1], colorscale: 'Viridis',
      showscale: last, colorbar: {thickness: 12, outlinewidth: 0}, xgap: 1, ygap: 1, hovertemplate: 'layer %{y}, head %{x}: %{z:.4f}<extra></extra>'};
  }

  // Places of the panels, ticks, titles. Panels of a row stand side by side, rows from the top.
  function layoutOf(panels, columns, width) {
    const rows = Math.ceil(panels.length / columns);
    const height = rows * (panelHeight + gapAbove) + legendHeight + 14;
    const inner = height - 50 - legendHeight;
    const gap = columns > 1 ? Math.min(.12, 76 / width) : 0;
    const share = (1 - gap * (columns - 1)) / columns;
    const layout = {
      ...plotLook(), width, height, hovermode: 'closest', barmode: 'group', bargap: .35,
      margin: {l: 58, r: 18, t: legendHeight, b: 50}, annotations: [],
      legend: {orientation: 'h', x: 0, y: 1, yanchor: 'bottom', yref: 'paper', font: {size: 12}},
    };
    panels.forEach((panel, index) => {
      const row = Math.floor(index / columns), column = index % columns;
      const left = column * (share + gap), step = inner / rows;
      const bottom = 1 - (row * step + step - (row === rows - 1 ? 0 : 46)) / inner;
      const top = 1 - (row * step + 26) / inner;
      const axis = axes(index);
      const plain = {...axisLook(), zerolinecolor: colour('neutral'), zeroline: panel.zero};
      const title = (text) => ({text, font: {size: 11, color: colour('quiet')}, standoff: 4});
      layout[axisKey(axis.x)] = {...plain, zeroline: false, anchor: axis.y, domain: [left, left + share], title: title(panel.x), automargin: true};
      layout[axisKey(axis.y)] = {...plain, anchor: axis.x, domain: [bottom, top], title: title(panel.y), automargin: index % columns === 0};
      if (panel.zero) layout[axisKey(axis.y)].rangemode = 'tozero';
      ticks(layout[axisKey(axis.x)], panel);
      if (panel.heat) {
        Object.assign(layout[axisKey(axis.y)], {dtick: Math.ceil(panel.heat.length / 12), autorange: 'reversed', showgrid: false, zeroline: false});
        Object.assign(layout[axisKey(axis.x)], {dtick: Math.ceil(panel.heat[0].length / 12), showgrid: false});
      }
      layout.annotations.push({text: panel.title.replaceAll('<', '‹'), showarrow: false, xref: 'paper', yref: 'paper', x: left, xanchor: 'left', y: top,
        yanchor: 'bottom', yshift: 3, font: {size: 12.5, color: colour('ink')}});
    });
    return layout;
  }

  function ticks(axis, panel) {
    const places = [...new Set(panel.traces.flatMap((trace) => trace.x))];
    if (panel.scale === 'category') {
      Object.assign(axis, {type: 'category', showgrid: false});
    } else if (panel.scale === 'log') {
      const text = (value) => (value < .01 ? value.toExponential().replace('e-', 'e−') : value.toLocaleString('en'));
      Object.assign(axis, {type: 'log', tickvals: places, ticktext: places.map(text)});
    } else if (panel.x === 'layer') {
      axis.dtick = Math.max(1, Math.ceil(places.length / 10));
      if (places.length === 1) axis.tickvals = places;
    }
  }

  function draw(index) {
    const figure = figures[index];
    const place = document.getElementById('plot-' + index);
    if (!place) return;
    const chosen = document.querySelector(`select[data-figure="${index}"]`);
    const panels = figure.views[chosen ? Number(chosen.value) : 0].panels;
    const width = Math.max(280, place.parentElement.clientWidth - 26);
    const columns = Math.min(panels.length, Math.max(1, Math.min(figure.columns, Math.floor(width / 250))));
    const heat = panels.flatMap((panel) => (panel.heat || []).flat()).filter((value) => value !== null);
    const range = [Math.min(0, ...heat), Math.max(...heat)];
    const named = new Set();
    const traces = panels.flatMap((panel, i) => (panel.heat ? [heatTrace(panel, i, range, i === panels.length - 1)]
      : panel.traces.map((trace) => plotTrace(trace, i, named))));
    Plotly.react(place, traces, layoutOf(panels, columns, width),
      {...config, displayModeBar: width < 500 ? false : 'hover'});  // on a phone it would lie on the legend
  }

  function save(url, name) {
    const link = document.createElement('a');
    link.setAttribute('href', url);
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
  }

  // As shown, on the card's ground instead of none.
  function image(index, format) {
    const place = document.getElementById('plot-' + index);
    const {width, height} = place.layout;
    const ground = {paper_bgcolor: colour('card'), plot_bgcolor: colour('card')};
    return Plotly.toImage({data: place.data, layout: {...place.layout, ...ground}}, {format, width, height, scale: format === 'png' ? 2 : 1});
  }

  for (const button of document.querySelectorAll('button[data-save]')) {
    button.addEventListener('click', async () => {
      const index = Number(button.dataset.figure), end = button.dataset.save, name = figures[index].id + end;
      if (figures[index].csvs[end]) {
        const url = URL.createObjectURL(new Blob(['\ufeff', figures[index].csvs[end]], {type: 'text/csv'}));
        save(url, name);
        setTimeout(() => URL.revokeObjectURL(url), 10000);
        return;
      }
      save(await image(index, end.slice(1)), name);
    });
  }
  for (const select of document.querySelectorAll('select[data-figure]')) select.addEventListener('change', () => draw(Number(select.dataset.figure)));
  const drawAll = () => figures.forEach((figure, index) => draw(index));
  let waiting;
  addEventListener('resize', () => {
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 150);
  });
  drawInTheme(drawAll);
})();
