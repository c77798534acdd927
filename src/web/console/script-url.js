// @ts-check
// Addresses of the console's workers. The page's policy takes the address of a script only by a policy of this name, of which a page
// has one.

const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("console", {
  createScriptURL: (/** @type {string} */ url) => {
    if (new URL(url).origin !== location.origin) throw new Error("A worker of another origin.");
    return url;
  },
});

/** @param {string} url whole, of this origin @returns {any} what a worker can be made of */
export const scriptUrl = (url) => policy?.createScriptURL(url) ?? url;
