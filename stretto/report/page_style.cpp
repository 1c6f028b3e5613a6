#include "stretto/report/page_parts.h"

namespace stretto::report {

// Colors have a contrast of at least 4.5 : 1 for text and 3 : 1 for curves, on both backgrounds.
const char* const page_style = R"css(
:root{color-scheme:light dark;--back:#fff;--panel:#f6f7f9;--line:#d5d9df;--text:#1b1f24;--quiet:#59626e;--link:#0b5cad;
--c0:#0072b2;--c1:#c04a00;--c2:#00805e;--c3:#a8457f;--c4:#8a6d00;--c5:#3b7fb5}
@media(prefers-color-scheme:dark){:root:not([data-theme=light]){--back:#14171c;--panel:#1d2127;--line:#373e48;--text:#e7eaee;
--quiet:#a3adb9;--link:#78b7f5;--c0:#4aa8e8;--c1:#f08a4b;--c2:#2fc79a;--c3:#e291bf;--c4:#e0bc3c;--c5:#a5d3f2}}
:root[data-theme=dark]{color-scheme:dark;--back:#14171c;--panel:#1d2127;--line:#373e48;--text:#e7eaee;--quiet:#a3adb9;
--link:#78b7f5;--c0:#4aa8e8;--c1:#f08a4b;--c2:#2fc79a;--c3:#e291bf;--c4:#e0bc3c;--c5:#a5d3f2}
:root[data-theme=light]{color-scheme:light}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--text);font:15px/1.5 system-ui,"DejaVu Sans",sans-serif}
header,main,footer{max-width:1180px;margin:0 auto;padding:0 24px}
header{padding-top:28px}footer{padding-bottom:32px;color:var(--quiet);font-size:13px}
h1{font-size:26px;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:18px;margin:36px 0 12px}
h3{font-size:14px;margin:0 0 4px;font-weight:600}
p{margin:4px 0}.quiet{color:var(--quiet)}
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:8px}
.scroll:focus-visible,svg:focus-visible{outline:2px solid var(--link);outline-offset:2px}
.scroll table{width:100%}.numbers{max-width:max-content}.numbers th,.numbers td{min-width:120px}
th,td{padding:6px 12px;text-align:left;vertical-align:top;border-top:1px solid var(--line);overflow-wrap:anywhere;max-width:520px}
thead th,thead td{border-top:0;background:var(--panel)}tbody th{font-weight:500}td.number,th.number{text-align:right;white-space:nowrap}td.text{white-space:pre-line}
.swatch{display:inline-block;width:14px;height:4px;border-radius:2px;margin-right:8px;vertical-align:middle}
.bar{display:flex;flex-wrap:wrap;gap:8px 20px;align-items:center;margin:8px 0 16px;padding:10px 14px;background:var(--panel);
border:1px solid var(--line);border-radius:8px;font-size:14px}
.bar label{display:inline-flex;gap:6px;align-items:center}.bar fieldset{border:0;margin:0;padding:0;display:flex;gap:12px;flex-wrap:wrap}
.bar legend{float:left;margin-right:8px;color:var(--quiet)}
button{font:inherit;color:inherit;background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:4px 12px;cursor:pointer}
.theme{float:right}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,480px),1fr));gap:16px}
figure{margin:0;padding:12px 14px 8px;border:1px solid var(--line);border-radius:8px;position:relative;min-width:0}
figure svg{display:block;width:100%;height:auto}
figure svg text{fill:var(--quiet);font-size:11px}
figure path.curve{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
figure path.raw{opacity:.28}figure .grid{stroke:var(--line)}figure .cross{stroke:var(--quiet);stroke-dasharray:3 3}
.values{min-height:20px;font-size:12.5px;color:var(--quiet);font-variant-numeric:tabular-nums}
.values b{color:var(--text);font-weight:600}.values .swatch{margin-right:5px}.values span{margin-right:14px;white-space:nowrap}
details{margin:8px 0;border:1px solid var(--line);border-radius:8px;padding:8px 14px}
summary{cursor:pointer;font-weight:500}pre{overflow-x:auto;font:12.5px/1.45 ui-monospace,"DejaVu Sans Mono",monospace;margin:8px 0}
.wrong{color:var(--c1);font-weight:600}
@media print{.bar,.theme{display:none}figure,details{break-inside:avoid}}
)css";

}  // namespace stretto::report
