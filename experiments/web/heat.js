/** The heat of a board: one scale for all games, named, with a legend; never colour alone. */

import {html} from "./vendor/htm/standalone.module.js";

/** Where a value lies on its scale, 0 to 1. */
export function level(heat, value) {
  const span = heat.high - heat.low;
  return span > 0 ? Math.min(Math.max((value - heat.low) / span, 0), 1) : 0;
}

/** How a value is shown: a class for its colour and an opacity. Q has two colours, shares one. */
export function shade(heat, value) {
  if (heat.kind !== "q") return {name: "heat", opacity: 0.08 + 0.72 * Math.sqrt(level(heat, value))};
  const far = value / Math.max(Math.abs(heat.low), Math.abs(heat.high), 1e-9);
  return {name: far < 0 ? "heat-bad" : "heat-good", opacity: 0.12 + 0.68 * Math.min(Math.abs(far), 1)};
}

/** A value in a few characters: a share in per cent, Q with its sign. */
export function valueText(heat, value) {
  if (heat.kind === "q") return (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
  const percent = 100 * value;
  return percent >= 10 ? `${Math.round(percent)}` : percent >= 1 ? percent.toFixed(0) : "<1";
}

/** The name of what is shown, and five steps of its scale. */
export function HeatLegend({heat, t}) {
  if (!heat) return null;
  const steps = [0, 0.25, 0.5, 0.75, 1].map((x) => heat.low + x * (heat.high - heat.low));
  return html`<p class="heat-legend" data-testid="heat-legend">
    <span>${t(`heat.${heat.kind}`)}</span>
    ${steps.map((value) => {
      const {name, opacity} = shade(heat, value);
      return html`<span class="heat-step">
        <svg viewBox="0 0 20 12" aria-hidden="true"><rect class=${name} width="20" height="12" opacity=${opacity} /></svg>
        ${valueText(heat, value)}${heat.kind === "q" ? "" : " %"}
      </span>`;
    })}
  </p>`;
}
