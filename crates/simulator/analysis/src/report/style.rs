//! The style sheet of the report, in addition to the colours in [`crate::chart::STYLE`].

pub(crate) const PAGE: &str = "\
*{box-sizing:border-box}\
body{margin:0 auto;max-width:1240px;padding:2.5rem 1.5rem 4rem;background:var(--ground);color:var(--text);\
font:16px/1.55 system-ui,-apple-system,'Segoe UI',sans-serif;font-variant-numeric:tabular-nums}\
h1{font-size:2.1rem;line-height:1.15;margin:.1rem 0 .5rem;letter-spacing:-.015em}\
article{margin-top:4rem}\
h2{font-size:1.2rem;margin:0 0 .35rem;letter-spacing:-.005em}\
p{max-width:46rem;margin:.2rem 0 .8rem}\
.kicker{color:var(--muted);font-size:.85rem;margin:0}\
.lead{font-size:1.1rem}\
.note,small,figcaption,dd{color:var(--muted)}\
.note{font-size:.9rem}\
small{font-weight:400}\
section{border-top:1px solid var(--grid);padding-top:1.4rem;margin-top:2rem}\
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(30rem,100%),1fr));gap:1.2rem 2rem}\
figure{margin:.4rem 0 0}\
figcaption{font-weight:600;font-size:.95rem}\
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;padding:0;margin:.2rem 0 .8rem;font-size:.9rem}\
.swatch{display:inline-block;width:.85em;height:.85em;border-radius:2px;margin-right:.45em;vertical-align:-.05em}\
.scroll{overflow-x:auto}\
.save{font-size:.85rem;color:var(--muted);margin:.2rem 0 .6rem}.save a{color:inherit}\
@media print{.save{display:none}}\
:focus-visible{outline:2px solid var(--c1);outline-offset:2px}\
table{border-collapse:collapse;width:100%;font-size:.88rem}\
th,td{padding:.38rem .55rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}\
thead th{vertical-align:bottom;font-weight:600;line-height:1.25;border-bottom:2px solid var(--grid)}\
th.name{text-align:left;font-weight:600}\
dl{display:grid;grid-template-columns:max-content 1fr;gap:.3rem 1.2rem;margin:.6rem 0}\
dt{font-weight:600}dd{margin:0}\
pre{overflow-x:auto;background:color-mix(in srgb,var(--grid) 45%,transparent);border-radius:6px;\
padding:.8rem 1rem;font-size:.85rem;line-height:1.5}\
code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}\
caption{text-align:left;color:var(--muted);font-size:.9rem;padding:.4rem 0}\
summary{cursor:pointer}";
