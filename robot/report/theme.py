"""How the page looks and moves: colours that stay apart without red and green, light and dark."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #fbfbf9; --card: #ffffff; --ink: #1d2226; --soft: #5b666e; --line: #dcdfe1;
  --good: #0072b2; --bad: #d7822a; --none: #7a7f83; --track: #eceeef; --warn: #fdf3df;
  --warn-ink: #6b4a00; --chosen: #0072b2; --candidate: #9aa4ab; --cursor: #c2185b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14181b; --card: #1c2226; --ink: #e8eaeb; --soft: #9eabb3; --line: #323b41;
    --good: #56b4e9; --bad: #e69f00; --none: #8d959a; --track: #2a3238; --warn: #332a14;
    --warn-ink: #f2d491; --chosen: #56b4e9; --candidate: #66727a; --cursor: #ff7fb0;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 32px 20px 80px; }
h1 { font-size: 28px; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 19px; margin: 40px 0 12px; }
h3 { font-size: 15px; margin: 20px 0 8px; }
p { margin: 8px 0; max-width: 75ch; }
.soft { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 16px 18px; margin: 12px 0; }
.verdict { font-size: 17px; border-left: 4px solid var(--good); }
.verdict.even { border-left-color: var(--none); }
.verdict.worse { border-left-color: var(--bad); }
.note { background: var(--warn); color: var(--warn-ink); border: 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 6px 10px; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { color: var(--soft); font-weight: 600; font-size: 13px; }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
td.text { white-space: normal; overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font: 13px system-ui, "DejaVu Sans", sans-serif; }
svg text.soft { fill: var(--soft); font-size: 12px; }
.axis { stroke: var(--line); stroke-width: 1; }
.zero { stroke: var(--soft); stroke-width: 1.5; }
.track { fill: var(--track); }
.success { fill: var(--good); }
.failure { fill: none; stroke: var(--bad); stroke-width: 1.2; }
.error { fill: var(--none); }
.missing { fill: var(--track); }
.bar { fill: var(--good); opacity: 0.85; }
.whisker { stroke: var(--ink); stroke-width: 2; }
.dot { fill: var(--ink); }
.up { stroke: var(--good); fill: var(--good); }
.down { stroke: var(--bad); fill: var(--bad); }
.even { stroke: var(--none); fill: var(--none); }
.interval { stroke-width: 4; stroke-linecap: round; }
.candidate { fill: var(--candidate); opacity: 0.7; }
.chosen { fill: var(--chosen); }
.path { fill: none; stroke: var(--chosen); stroke-width: 1.6; }
.cursor { stroke: var(--cursor); stroke-width: 1.5; }
.won { fill: none; stroke: var(--good); stroke-width: 1.1; opacity: 0.55; }
.lost { fill: none; stroke: var(--bad); stroke-width: 1.1; opacity: 0.55; stroke-dasharray: 4 2; }
.films { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); }
figure { margin: 0; }
figcaption { display: flex; justify-content: space-between; padding: 0 2px 6px; }
video { width: 100%; height: auto; border-radius: 6px; background: #000; display: block; }
.small video { image-rendering: pixelated; }
.tag { font-size: 13px; font-weight: 600; padding: 0 8px; border-radius: 9px; border: 1px solid; }
.tag.yes { color: var(--good); } .tag.no { color: var(--bad); } .tag.void { color: var(--none); }
button { font: inherit; color: inherit; background: var(--track); border: 1px solid var(--line);
  border-radius: 6px; padding: 3px 12px; cursor: pointer; }
.head { display: flex; justify-content: space-between; align-items: center; gap: 12px; }
.head h3 { margin: 0; }
details > summary { cursor: pointer; padding: 4px 0; }
.facts { columns: 2 420px; column-gap: 32px; font-size: 13px; }
.facts td { padding: 2px 8px; border-bottom: 0; }
.facts summary { font-weight: 600; }
.key { display: inline-flex; gap: 16px; flex-wrap: wrap; font-size: 13px; color: var(--soft); }
.key svg { display: inline-block; width: 12px; height: 12px; vertical-align: -1px; }
"""

# Each film moves the cursor of the plot below it; a seed's button plays its films together.
SCRIPT = """
document.querySelectorAll("figure").forEach((figure) => {
  const film = figure.querySelector("video"), cursor = figure.querySelector(".cursor");
  if (!film || !cursor) return;
  const left = Number(cursor.dataset.left), width = Number(cursor.dataset.width);
  const span = Number(cursor.dataset.span);
  const follow = () => {
    const x = left + width * Math.min(1, film.currentTime / span);
    cursor.setAttribute("x1", x); cursor.setAttribute("x2", x);
    if (!film.paused) requestAnimationFrame(follow);
  };
  ["play", "seeked", "timeupdate"].forEach((name) => film.addEventListener(name, follow));
});
document.querySelectorAll("[data-seed]").forEach((block) => {
  const films = [...block.querySelectorAll("video")];
  block.querySelector("button").addEventListener("click", () => {
    films.forEach((film) => { film.currentTime = 0; film.play(); });
  });
});
"""
