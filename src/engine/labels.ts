// Labels of nodes, and those that an executor asks for.

export type Labels = Readonly<Record<string, string>>;

export const noLabels: Labels = Object.freeze({});

/** Whether a node has all the labels that are asked for, with these values. */
export function hasLabels(node: Labels, asked: Labels): boolean {
  return Object.entries(asked).every(([name, value]) => Object.hasOwn(node, name) && node[name] === value);
}

/** `the labels zone=a, disk=fast`. */
export function labelsText(labels: Labels): string {
  const texts = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  if (texts.length === 0) return "no label";
  return `the label${texts.length === 1 ? "" : "s"} ${texts.join(", ")}`;
}
