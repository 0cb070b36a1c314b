/**
 * A drawn SVG saved as a file. What is saved must carry its own attributes: no style sheet goes
 * with it. Text in `currentColor` gets the page's ink, the ground its panel.
 */

import {inks} from "./ink.js";

/** The text of an SVG file of an element. */
export function svgText(element) {
  const copy = element.cloneNode(true);
  const [, , width, height] = element.getAttribute("viewBox").split(" ").map(Number);
  const style = getComputedStyle(element);
  for (const name of ["class", "style", "tabindex"]) copy.removeAttribute(name);
  for (const inner of copy.querySelectorAll("[tabindex]")) inner.removeAttribute("tabindex");
  const wanted = {xmlns: "http://www.w3.org/2000/svg", width, height, color: style.color, "font-family": "sans-serif"};
  for (const [name, value] of Object.entries(wanted)) copy.setAttribute(name, value);
  const back = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const box = element.getAttribute("viewBox").split(" ");
  ["x", "y", "width", "height"].forEach((name, i) => back.setAttribute(name, box[i]));
  back.setAttribute("fill", inks("panel").panel);
  copy.prepend(back);
  return new XMLSerializer().serializeToString(copy);
}

/** Saves an element as NAME.svg. */
export function saveSvg(element, name) {
  save(new Blob([svgText(element)], {type: "image/svg+xml"}), `${name}.svg`);
}

/** Saves an element as NAME.png, `scale` pixels to a unit. */
export async function savePng(element, name, scale = 2) {
  const [, , width, height] = element.getAttribute("viewBox").split(" ").map(Number);
  const url = URL.createObjectURL(new Blob([svgText(element)], {type: "image/svg+xml"}));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    const most = Math.min(scale, 8192 / Math.max(width, height)); // what browsers can hold
    canvas.width = Math.ceil(width * most);
    canvas.height = Math.ceil(height * most);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    save(await new Promise((done) => canvas.toBlob(done, "image/png")), `${name}.png`);
  } finally {
    URL.revokeObjectURL(url);
  }
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
