/** The board of a game: games/KIND.js for the kind of scene, or the scene's text as it is. */

import {html, useEffect, useState} from "./vendor/htm/standalone.module.js";

function TextBoard({scene}) {
  return html`<pre class="position" data-testid="board">${scene.text}</pre>`;
}

/** {Board, lost}: the component when it is there, and why it can not be loaded. */
export function useBoard(kind) {
  const [found, setFound] = useState({});
  useEffect(() => {
    let wanted = true;
    if (!kind) return undefined;
    if (kind === "text") {
      setFound({kind, Board: TextBoard});
      return undefined;
    }
    import(`./games/${kind}.js`).then(
      (module) => wanted && setFound({kind, Board: module.default}),
      (error) => wanted && setFound({kind, lost: error.message}),
    );
    return () => {
      wanted = false;
    };
  }, [kind]);
  return found.kind === kind ? found : {};
}
