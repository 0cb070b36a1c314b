/** How wide an element is. */

import {useLayoutEffect, useState} from "./vendor/htm/standalone.module.js";

/** Pixels of the width of `box.current`, followed while it changes, 0 until it is `there`. */
export function useWidth(box, there = true) {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!there) return undefined;
    setWidth(Math.floor(box.current.clientWidth)); // at once: nothing is drawn in a wrong size
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [there]);
  return width;
}
