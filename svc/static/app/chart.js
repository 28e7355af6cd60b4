// Spend per day as stacked bars, usable by mouse, touch and arrow keys, and as a table.
import { useSignal } from "@preact/signals";
import { stepOf } from "./arrows.js";
import { cost, date } from "./format.js";
import { html } from "./html.js";
import { texts } from "./texts/en/wallet.js";

const t = texts.wallet;
const WIDTH = 720,
  HEIGHT = 200,
  FOOT = 22;
const MOST_SERIES = 5;

const today = () => new Date().toISOString().slice(0, 10);

/**
 * `rows`: [{day: "2026-01-31", series, micros}]; `days`: how many, up to the day `until` (UTC). The largest
 * series keep their own colour. `label`: the chart's accessible name.
 */
export function SpendChart({ rows, days, labelOf, until = today(), label = t.chartLabel(days) }) {
  const chosen = useSignal(null);
  const { names, columns, top } = columnsOf(rows, days, until);
  const step = WIDTH / days,
    bar = Math.max(step * 0.72, 2),
    scale = (HEIGHT - FOOT - 10) / top;
  const at = Math.min(chosen.value ?? days - 1, days - 1);
  const move = (event) => {
    const step = stepOf(event),
      to = step ? at + step : { Home: 0, End: days - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    chosen.value = Math.max(0, Math.min(days - 1, to));
  };
  const name = (series) => (series === null ? t.others : labelOf(series));
  const follow = (event) => {
    const box = event.currentTarget.getBoundingClientRect(),
      from = document.dir === "rtl" ? box.right - event.clientX : event.clientX - box.left;
    chosen.value = Math.max(0, Math.min(days - 1, Math.floor((from / box.width) * days)));
  };
  return html`<div class="chart">
    <svg
      viewBox="0 0 ${WIDTH} ${HEIGHT}"
      role="img"
      aria-label=${label}
      tabindex="0"
      preserveAspectRatio="none"
      onKeyDown=${move}
      onPointerMove=${follow}
      onPointerDown=${follow}
      onPointerLeave=${() => {
        chosen.value = null;
      }}
    >
      ${[0.5, 1].map(
        (part) => html`<line
        class="chart-line"
        x1="0"
        x2=${WIDTH}
        y1=${HEIGHT - FOOT - top * part * scale}
        y2=${HEIGHT - FOOT - top * part * scale}
      />`,
      )}
      ${columns.map((column, index) => {
        let y = HEIGHT - FOOT;
        return html`<g class=${index === chosen.value ? "chart-column chosen" : "chart-column"}>
          <rect class="chart-hit" x=${index * step} y="0" width=${step} height=${HEIGHT - FOOT} />
          ${column.parts.map(({ micros, series }) => {
            const height = Math.max(micros * scale, 1);
            y -= height;
            return html`<rect
              class="series-${names.indexOf(series)}"
              x=${index * step + (step - bar) / 2}
              y=${y}
              width=${bar}
              height=${height}
            />`;
          })}
        </g>`;
      })}
      <line class="chart-base" x1="0" x2=${WIDTH} y1=${HEIGHT - FOOT} y2=${HEIGHT - FOOT} />
    </svg>
    <div class="chart-foot quiet small" aria-hidden="true">
      <span>${date(columns[0].day)}</span><span>${t.most(cost(top))}</span>
      <span>${date(columns.at(-1).day)}</span>
    </div>
    <p class="chart-said" aria-live="polite">
      <strong>${date(columns[at].day)}</strong> ${cost(columns[at].all)}
      ${columns[at].parts.map(
        ({ series, micros }) => html`<span class="legend">
        <i class="series-${names.indexOf(series)}"></i>${name(series)} ${cost(micros)}
      </span>`,
      )}
    </p>
    ${
      names.length > 1 &&
      html`<ul class="legends">
        ${names.map(
          (series, index) => html`<li class="legend"><i class="series-${index}"></i>${name(series)}</li>`,
        )}
      </ul>`
    }
  </div>`;
}

function columnsOf(rows, days, until) {
  const totals = new Map();
  for (const { series, micros } of rows) totals.set(series, (totals.get(series) ?? 0) + micros);
  const largest = [...totals]
    .filter(([, micros]) => micros > 0)
    .sort((one, other) => other[1] - one[1])
    .map(([series]) => series);
  const own = largest.slice(0, largest.length > MOST_SERIES + 1 ? MOST_SERIES : MOST_SERIES + 1);
  const names = own.length < largest.length ? [...own, null] : own;
  const last = Date.parse(until);
  const columns = Array.from({ length: days }, (_, index) =>
    new Date(last - (days - 1 - index) * 86_400_000).toISOString().slice(0, 10),
  ).map((day) => {
    const parts = names
      .map((series) => ({
        series,
        micros: rows.reduce(
          (sum, row) =>
            sum +
            (row.day === day && (series === null ? !own.includes(row.series) : row.series === series)
              ? row.micros
              : 0),
          0,
        ),
      }))
      .filter(({ micros }) => micros > 0);
    return { day, parts, all: parts.reduce((sum, part) => sum + part.micros, 0) };
  });
  return { names, columns, top: Math.max(...columns.map(({ all }) => all), 1) };
}
