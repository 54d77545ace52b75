import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { type Column, type History, SPAN_S } from "../history.ts";
import { language } from "../lang/index.ts";

/** One line of a chart. tone is a colour of the style; dashed tells lines apart without colours. */
export interface Series {
  column: string;
  name: string;
  tone: number;
  dashed?: boolean;
  filled?: boolean;
}

interface Props {
  title: string;
  note?: string;
  history: History;
  at: number; // of the newest figures: what makes the chart draw again
  series: Series[];
  write: (n: number) => string;
}

const sync = "sale"; // the cursors of all charts move together

/** A chart of the last minutes. Its legend says in words and figures what the lines show. */
export function Chart({ title, note, history, at, series, write }: Props) {
  const { t } = language.value;
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const scheme = useScheme();
  const shape = `${language.value.tag} ${scheme} ${series.map(({ column, name }) => `${column}=${name}`).join(" ")}`;

  // The shape stands for everything that a chart is made of.
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const drawn = new uPlot(optionsOf(element, series, setPointed), dataOf(history, series), element);
    plot.current = drawn;
    const resized = new ResizeObserver(() => drawn.setSize(sizeOf(element)));
    resized.observe(element);
    return () => {
      resized.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [shape]);

  // The time of the newest figures says when there is something new.
  useEffect(() => {
    plot.current?.setData(dataOf(history, series));
  }, [at, history]);

  const shown = (column: string) => {
    const values = history.column(column);
    return (pointed === null ? values.at(-1) : values[pointed]) ?? null;
  };
  const words = (n: number | null | undefined) => (n === null || n === undefined ? "–" : write(n));
  const said = series.map(({ column, name }) =>
    t.chart.say(name, words(history.column(column).at(-1)), words(history.peak(column))),
  );
  return (
    <figure class="panel chart">
      <figcaption>
        <h2>{title}</h2>
        <span class="soft">{note ?? t.chart.last}</span>
      </figcaption>
      <div class="plot" dir="ltr" ref={box} role="img" aria-label={`${title}, ${t.chart.last}. ${said.join(". ")}`} />
      <ul class="legend">
        {series.map(({ column, name, tone, dashed }) => (
          <li key={column}>
            <span class={`swatch s${tone} ${dashed ? "dashed" : ""}`} aria-hidden="true" />
            {name} <b class="digits">{words(shown(column))}</b>
          </li>
        ))}
      </ul>
    </figure>
  );
}

function dataOf(history: History, series: Series[]): uPlot.AlignedData {
  return [history.at, ...series.map(({ column }) => history.column(column))] as [number[], ...Column[]];
}

function sizeOf(element: HTMLElement): { width: number; height: number } {
  return { width: Math.max(120, element.clientWidth), height: Math.max(80, element.clientHeight) };
}

function optionsOf(element: HTMLElement, series: Series[], point: (index: number | null) => void): uPlot.Options {
  const style = getComputedStyle(element);
  const color = (name: string) => style.getPropertyValue(`--${name}`).trim() || "#888";
  const em = Number.parseFloat(style.fontSize) || 14;
  const axis = {
    stroke: color("soft"),
    font: `${Math.round(em)}px ${style.fontFamily}`,
    grid: { stroke: color("line"), width: 1 },
    ticks: { show: false },
    border: { show: false },
  };
  return {
    ...sizeOf(element),
    padding: [em * 0.6, em * 1.6, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, sync: { key: sync }, points: { size: em * 0.5 } },
    scales: {
      x: {
        range: (_, _min, max) => {
          const end = max ?? Date.now() / 1000;
          return [end - SPAN_S, end];
        },
      },
      y: { range: (_, _min, max) => [0, Math.max(4, (max ?? 0) * 1.1)] },
    },
    axes: [
      {
        ...axis,
        incrs: [60, 120, 300],
        space: em * 5,
        size: em * 2,
        gap: em * 0.4,
        values: (_, splits) => splits.map((at) => language.value.f.hour(at * 1000)),
      },
      {
        ...axis,
        space: em * 3.2,
        size: em * 3.4,
        gap: em * 0.4,
        values: (_, splits) => splits.map((n) => (Number.isInteger(n) ? language.value.f.short(n) : "")),
      },
    ],
    series: [
      {},
      ...series.map(({ tone, dashed, filled }) => ({
        stroke: color(`s${tone}`),
        width: Math.max(1.5, em / 8),
        points: { show: false },
        ...(dashed && { dash: [em * 0.45, em * 0.3] }),
        ...(filled && { fill: color(`s${tone}-fill`) }),
      })),
    ],
    hooks: { setCursor: [(drawn) => point(drawn.cursor.idx ?? null)] },
  };
}

/** Light or dark: a canvas has to be drawn again when that changes. */
function useScheme(): string {
  const query = "(prefers-color-scheme: dark)";
  const [dark, setDark] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const change = () => setDark(list.matches);
    list.addEventListener("change", change);
    return () => list.removeEventListener("change", change);
  }, []);
  return dark ? "dark" : "light";
}
