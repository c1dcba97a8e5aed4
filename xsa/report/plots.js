'use strict';
// What the plots of all pages share: the theme's colours, and a plot's look in them.
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
const axisLook = () => ({gridcolor: colour('grid'), linecolor: colour('line'), zerolinecolor: colour('line'), ticks: '', automargin: true});
const plotLook = () => ({
  paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
  font: {family: getComputedStyle(document.body).fontFamily, size: 12, color: colour('ink')},
  hoverlabel: {bgcolor: colour('card'), bordercolor: colour('line'), font: {color: colour('ink')}},
  modebar: {bgcolor: 'rgba(0,0,0,0)', color: colour('line'), activecolor: colour('quiet')},
});
// Draws now, and again where the theme changes.
function drawInTheme(draw) {
  for (const media of ['(prefers-color-scheme: dark)', 'print']) matchMedia(media).addEventListener('change', draw);
  draw();
}
