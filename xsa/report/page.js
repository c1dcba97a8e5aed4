// Draws the plots from the JSON in #data. Two choices, made in the key, hold for all of them: which attentions are shown,
// and what runs along the horizontal axis of the losses.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const names = {standard: 'standard', exclusive: 'XSA'};
  const attentions = Object.keys(names);
  const shown = {standard: true, exclusive: true};
  const axes = {step: 'step', tokens: 'training tokens', elapsed_s: 'training time (s)'};
  let x = 'step';

  const known = (values) => values.some((value) => value !== null);
  // The buttons are named, as plotly's own choice includes one that sends the chart away.
  const config = {responsive: true, displaylogo: false, modeBarButtons: [['toImage', 'zoom2d', 'pan2d', 'resetScale2d']]};

  function layout(xTitle, yTitle, more) {
    const axis = axisLook();
    const title = (text) => ({text, font: {size: 12, color: colour('quiet')}, standoff: 8});
    return {
      ...plotLook(), showlegend: false,
      margin: {l: 54, r: 18, t: 12, b: 42}, hovermode: 'x unified', dragmode: 'zoom',
      xaxis: {...axis, title: title(xTitle), hoverformat: ',.0f'},
      yaxis: {...axis, title: title(yTitle)},
      ...more,
    };
  }

  // Thin lines for the seeds (where there are several) under a thick one for their mean.
  function lines(set, abscissa, style, digits) {
    const several = set.seeds.length > 1;
    const thin = several ? set.seeds.map((curve) => ({
      x: curve[abscissa], y: curve.loss, name: `${style.name}, seed ${curve.seed}`, mode: 'lines', opacity: .35,
      line: {color: style.color, width: 1, dash: style.dash}, hoverinfo: 'skip',
    })) : [];
    const mean = {
      x: set.mean[abscissa], y: set.mean.loss, name: style.name + (several ? ', mean' : ''),
      mode: style.symbol ? 'lines+markers' : 'lines', line: {color: style.color, width: 2.5, dash: style.dash},
      marker: {symbol: style.symbol, size: 7, color: style.color}, hovertemplate: `%{y:${digits}}`,
    };
    return [...thin, mean];
  }

  function attentionLines(curves, abscissa, digits, markers) {
    return attentions.filter((attention) => shown[attention]).flatMap((attention) =>
      lines(curves[attention], abscissa, {
        name: names[attention], color: colour(attention), dash: attention === 'standard' ? 'dash' : 'solid',
        symbol: markers ? (attention === 'standard' ? 'circle' : 'diamond') : undefined,
      }, digits));
  }

  function draw(id, traces, shape) {
    const place = document.getElementById(id);
    const empty = !traces.some((trace) => known(trace.y) && known(trace.x));
    if (empty) {
      Plotly.purge(place);
      place.textContent = attentions.some((attention) => shown[attention]) ? 'not measured' : 'nothing chosen';
      place.classList.add('absent');
      return;
    }
    if (place.classList.contains('absent')) {
      place.textContent = '';
      place.classList.remove('absent');
    }
    Plotly.react(place, traces, shape, {...config, displayModeBar: place.matches('.small, .bar') ? false : 'hover'});
  }

  function drawLosses() {
    draw('validation', attentionLines(data.curves.validation, x, '.4f', true), layout(axes[x], 'nats/token'));
    draw('train', attentionLines(data.curves.train, x, '.4f', false), layout(axes[x], 'nats/token'));
  }

  function drawDifference() {
    const abscissa = x === 'elapsed_s' ? 'step' : x;  // at equal time the two have no common points
    const smoothed = `training, smoothed over ${data.smoothed_over} points`;
    const traces = [
      ...lines(data.differences.train, abscissa, {name: smoothed, color: colour('quiet'), dash: 'dot'}, '+.4f'),
      ...lines(data.differences.validation, abscissa, {name: 'validation', color: colour('exclusive'), dash: 'solid', symbol: 'diamond'}, '+.4f'),
    ];
    const several = data.differences.validation.seeds.length > 1;
    for (const trace of traces) trace.showlegend = !several || trace.name.endsWith(', mean');
    const shape = layout(axes[abscissa], 'nats/token', {showlegend: true, legend: {orientation: 'h', x: 0, y: 1.02, yanchor: 'bottom'}});
    shape.margin.t = 36;
    Object.assign(shape.yaxis, {zeroline: true, zerolinecolor: colour('neutral'), zerolinewidth: 1.5, rangemode: 'tozero'});
    draw('difference', traces, shape);
  }

  // One small plot for each figure of each task and text; the names are the files' and stay text.
  function addEvaluations() {
    const section = document.getElementById('evaluations');
    section.hidden = data.evaluations.length === 0;
    data.evaluations.forEach(({name, metric}, index) => {
      const figure = document.createElement('figure');
      const caption = document.createElement('figcaption');
      const small = document.createElement('small');
      const plot = document.createElement('div');
      figure.className = 'card';
      small.textContent = metric.replaceAll('_', ' ');
      caption.append(name, ' ', small);
      plot.className = 'plot small';
      plot.id = `evaluation-${index}`;
      figure.append(caption, plot);
      section.querySelector('.grid').append(figure);
    });
  }

  function drawEvaluations() {
    data.evaluations.forEach(({range, curves}, index) => {
      const shape = layout(axes[x], '', {});
      Object.assign(shape.margin, {l: 40, r: 10});
      if (range) Object.assign(shape.yaxis, {range});
      draw(`evaluation-${index}`, attentionLines(curves, x, '.4f', true), shape);
    });
  }

  // From 0 to the largest of the given quantities, hidden attentions included: choosing one does not move the axis.
  function layerRange(keys) {
    const values = keys.flatMap((key) => attentions.flatMap((attention) =>
      [data.curves[key][attention].mean, ...data.curves[key][attention].seeds].flatMap((curve) => curve.loss)));
    return [1.08 * Math.min(0, ...values), 1.08 * Math.max(0.05, ...values)];
  }

  function drawLayers() {
    const outputs = ['output_value_cosine', 'final_value_cosine'];  // one axis: they are to be compared
    for (const key of ['value_cosine', 'attention_diagonal', ...outputs]) {
      const shape = layout('layer', '', {});
      Object.assign(shape.margin, {l: 40, r: 10});
      Object.assign(shape.xaxis, {tickformat: 'd', dtick: layerStep()});
      Object.assign(shape.yaxis, {range: layerRange(outputs.includes(key) ? outputs : [key])});
      draw(key, attentionLines(data.curves[key], 'step', '.3f', true), shape);
    }
  }

  function layerStep() {
    const layers = Math.max(1, ...attentions.map((attention) => data.curves.value_cosine[attention].mean.step.length));
    return Math.ceil(layers / 12);
  }

  function drawBars() {
    for (const [key, unit, digits] of [['tokens_per_s', 'tokens/s', ',.0f'], ['peak_tensor_bytes', 'MiB', ',.1f']]) {
      const visible = attentions.filter((attention) => shown[attention]).reverse();
      const figures = visible.map((attention) => data.bars[key][attention]);
      const bar = {
        type: 'bar', orientation: 'h', x: figures.map((figure) => figure.mean), y: visible.map((attention) => names[attention]),
        marker: {color: visible.map(colour)}, width: .62, texttemplate: `<b>%{x:${digits}}</b>`, textposition: 'inside', insidetextanchor: 'start',
        textfont: {color: colour('card')}, hovertemplate: `%{y}: %{x:${digits}} ${unit}<extra></extra>`,
      };
      const dots = visible.flatMap((attention, row) => (figures[row].values.length > 1 ? figures[row].values : [])
        .map((value) => ({value, attention})));
      const seeds = {
        type: 'scatter', mode: 'markers', x: dots.map((dot) => dot.value), y: dots.map((dot) => names[dot.attention]),
        marker: {color: colour('ink'), size: 7, symbol: 'line-ns-open'}, hovertemplate: `a seed: %{x:${digits}} ${unit}<extra></extra>`,
      };
      const shape = layout(unit, '', {hovermode: 'closest'});
      Object.assign(shape.xaxis, {rangemode: 'tozero'});
      Object.assign(shape.yaxis, {showgrid: false, title: undefined});
      draw(key, known(bar.x) ? [bar, seeds] : [], shape);
    }
  }

  function drawAll() {
    drawLosses();
    drawDifference();
    drawEvaluations();
    drawLayers();
    drawBars();
  }

  for (const button of document.querySelectorAll('[data-attention]')) {
    button.addEventListener('click', () => {
      const attention = button.dataset.attention;
      shown[attention] = !shown[attention];
      button.setAttribute('aria-pressed', shown[attention]);
      drawAll();
    });
  }
  for (const button of document.querySelectorAll('[data-x]')) {
    button.addEventListener('click', () => {
      x = button.dataset.x;
      for (const other of document.querySelectorAll('[data-x]')) other.setAttribute('aria-pressed', other === button);
      drawLosses();
      drawDifference();
      drawEvaluations();
    });
  }
  if (data.curves.validation.standard.seeds.length < 2 && data.curves.validation.exclusive.seeds.length < 2)
    for (const note of document.querySelectorAll('.seeds')) note.remove();
  addEvaluations();
  drawInTheme(drawAll);
})();
