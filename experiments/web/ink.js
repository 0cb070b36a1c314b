/** Colours of the style sheet as they are now, for what a script draws. */

/**
 * {name: "rgb(...)"} of the sheet's variables. A variable holds both the light colour and the
 * dark one; which of them is meant is known only where it is used.
 */
export function inks(...names) {
  const probe = document.createElement("i");
  probe.hidden = true;
  document.body.append(probe);
  const found = names.map((name) => {
    probe.style.color = `var(--${name})`;
    return [name, getComputedStyle(probe).color];
  });
  probe.remove();
  return Object.fromEntries(found);
}
