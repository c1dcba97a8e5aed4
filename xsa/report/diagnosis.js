// Draws the lines over layers and the maps of heads from the JSON in #data.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const config = {responsive: true, displayModeBar: false};
  const step = (count) => Math.max(1, Math.ceil(count / 12));
  const panels = {
    values: [['value_cosine', 'values', 'exclusive']],
    diagonal: [['attention_diagonal', 'own key', 'exclusive']],
    outputs: [['output_value_cosine', 'y, gathered', 'standard', 'dash'], ['final_value_cosine', 'z, passed on', 'exclusive']],
    masses: [['attention_diagonal', 'own key', 'exclusive'], ['first_key_mass', 'first key', 'standard', 'dash'], ['sink_mass', 'sinks', 'neutral', 'dot']],
    removed: [['removed_share', 'removed', 'exclusive']],
    strength: [['strength', 'strength', 'exclusive']],
  };
  const maps = [
    ['value_cosine', 'Values with one another'], ['attention_diagonal', 'Attention to the own key'],
    ['output_value_cosine', 'Output with own value'], ['final_value_cosine', 'Passed on with own value'],
    ['first_key_mass', 'Attention to the first key'], ['sink_mass', 'Attention to sinks'],
    ['removed_share', 'Share that is removed'], ['strength', 'Strength of the exclusion'],
  ];

  function layout(xTitle, more) {
    const axis = axisLook();
    return {
      ...plotLook(), showlegend: false,
      margin: {l: 40, r: 10, t: 12, b: 42}, hovermode: 'x unified',
      xaxis: {...axis, title: {text: xTitle, font: {size: 12, color: colour('quiet')}, standoff: 8}, tickformat: 'd'},
      yaxis: axis,
      ...more,
    };
  }

  function drawPanels() {
    for (const [id, lines] of Object.entries(panels)) {
      const values = lines.flatMap(([key]) => data.means[key] ?? []).filter((value) => value !== null);
      if (values.length === 0) {
        document.getElementById(id).textContent = 'not measured';
        document.getElementById(id).classList.add('absent');
        continue;
      }
      const several = lines.length > 1;
      const shape = layout('layer', several ? {showlegend: true, legend: {orientation: 'h', x: 0, y: 1.02, yanchor: 'bottom'}} : {});
      if (several) shape.margin.t = 30;
      shape.xaxis.dtick = step(data.layers.length);
      if (data.layers.length === 1) shape.xaxis.tickvals = data.layers;
      shape.yaxis.range = [1.08 * Math.min(0, ...values), 1.08 * Math.max(0.05, ...values)];
      Plotly.react(id, lines.map(([key, name, shade, dash]) => ({
        x: data.layers, y: data.means[key], name, mode: 'lines+markers', line: {color: colour(shade), width: 2.5, dash: dash ?? 'solid'},
        marker: {size: 7, color: colour(shade)}, hovertemplate: '%{y:.3f}',
      })), shape, config);
    }
  }

  // A map that is 0 everywhere (no sinks, no exclusion) says nothing and is left out.
  const told = maps.filter(([key]) => (data.heads[key] ?? []).flat().some((value) => value));

  function addMaps() {
    document.getElementById('heads').hidden = told.length === 0;
    for (const [key, title] of told) {
      const figure = document.createElement('figure');
      const caption = document.createElement('figcaption');
      const plot = document.createElement('div');
      figure.className = 'card';
      caption.textContent = title;
      plot.className = 'plot small';
      plot.id = `map-${key}`;
      figure.append(caption, plot);
      document.querySelector('#heads .grid').append(figure);
    }
  }

  function drawMaps() {
    for (const [key] of told) {
      const values = data.heads[key].flat().filter((value) => value !== null);
      const shape = layout('head', {hovermode: 'closest'});
      const heads = Math.max(...data.heads[key].map((row) => row.length));
      Object.assign(shape.xaxis, {showgrid: false, zeroline: false, dtick: step(heads)});
      Object.assign(shape.yaxis, {showgrid: false, zeroline: false, autorange: 'reversed', tickformat: 'd', dtick: step(data.layers.length)});
      // Where something is negative, as far on either side of 0: a colour's depth is then its size.
      const high = Math.max(0.01, ...values.map(Math.abs)), low = values.some((value) => value < 0) ? -high : 0;
      const scale = low < 0
        ? [[0, colour('standard')], [.5, colour('card')], [1, colour('exclusive')]]
        : [[0, colour('card')], [1, colour('exclusive')]];
      Plotly.react(`map-${key}`, [{
        type: 'heatmap', z: data.heads[key], y: data.layers, zmin: low, zmax: high, colorscale: scale, xgap: 1, ygap: 1,
        colorbar: {thickness: 10, outlinewidth: 0, tickfont: {size: 11, color: colour('quiet')}},
        hovertemplate: 'layer %{y}, head %{x}: %{z:.3f}<extra></extra>',
      }], shape, config);
    }
  }

  function drawAll() {
    drawPanels();
    drawMaps();
  }

  addMaps();
  drawInTheme(drawAll);
})();
