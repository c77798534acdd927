// @ts-check
// The form over the page when the gateway wants its token. After it, the page goes on where it was.

import { html, useRef, useState } from "./html.js";
import { Dialog } from "./parts/dialog.js";
import { signIn, signInProblem } from "./session.js";

const loopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\]|.*\.localhost)$/;

export function SignIn() {
  const [problem, setProblem] = useState(signInProblem.value);
  const [isBusy, setBusy] = useState(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const isPlain = location.protocol === "http:" && !loopback.test(location.hostname);
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const input = /** @type {HTMLInputElement} */ (field.current);
    setBusy(true);
    setProblem(await signIn({ token: input.value }));
    setBusy(false);
    input.select();
  };
  return html`<${Dialog} title="Sign in" close=${() => {}} class="sign-in">
    <p>This gateway wants its API token, which is in SVC_API_TOKEN. The command <code>troupe console</code> prints a link that signs in, too.</p>
    ${isPlain && html`<p class="wrong">This address is plain http on another machine, where browsers keep no secure cookie. Use https, or a tunnel to localhost.</p>`}
    <form onSubmit=${submit} class="fields">
      <label class="field">Token
        <input ref=${field} type="password" name="token" required autocomplete="current-password" autofocus aria-describedby="sign-in-problem" />
      </label>
      <p id="sign-in-problem" role="alert" class="wrong" dir="auto">${problem}</p>
      <div class="actions end"><button type="submit" class="primary" disabled=${isBusy}>Sign in</button></div>
    </form>
  </${Dialog}>`;
}
