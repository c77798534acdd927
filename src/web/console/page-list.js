// @ts-check
// The views of the console. A view's script is loaded when somebody goes there.

/**
 * @typedef {object} PageEntry
 * @property {string} pattern of the path below /console
 * @property {string} [name] in the rail; without one it is reached from other views
 * @property {string} [key] pressed after g
 * @property {() => Promise<{ Page: any }>} load
 */

/** @type {readonly PageEntry[]} */
export const pages = [
  { pattern: "/", name: "Home", key: "h", load: () => import("./pages/home.js") },
  { pattern: "/runs", name: "Runs", key: "r", load: () => import("./pages/runs.js") },
  { pattern: "/runs/:id/:tab?", load: () => import("./run/run-page.js") },
  { pattern: "/questions", name: "Questions", key: "q", load: () => import("./pages/questions.js") },
  { pattern: "/dead-letters", name: "Dead letters", key: "d", load: () => import("./pages/dead-letters.js") },
  { pattern: "/jobs", name: "Jobs", key: "j", load: () => import("./pages/jobs.js") },
  { pattern: "/jobs/:id", load: () => import("./pages/job.js") },
  { pattern: "/blueprints", name: "Blueprints", key: "b", load: () => import("./pages/blueprints.js") },
  { pattern: "/blueprints/:id", load: () => import("./pages/blueprint.js") },
  { pattern: "/compare", name: "Compare", key: "c", load: () => import("./pages/compare.js") },
  { pattern: "/schedules", name: "Schedules", key: "s", load: () => import("./pages/schedules.js") },
  { pattern: "/schedules/:id", load: () => import("./pages/schedules.js") },
  { pattern: "/deployments", name: "Deployments", key: "e", load: () => import("./pages/deployments.js") },
  { pattern: "/deployments/:id", load: () => import("./pages/deployments.js") },
  { pattern: "/models", name: "Models", key: "m", load: () => import("./pages/models.js") },
  { pattern: "/models/:id", load: () => import("./pages/model.js") },
  { pattern: "/services", name: "Services", key: "v", load: () => import("./pages/services.js") },
  { pattern: "/nodes", name: "Nodes", key: "n", load: () => import("./pages/machines.js") },
  { pattern: "/operations", name: "Operations", key: "o", load: () => import("./pages/operations.js") },
  { pattern: "/limits", name: "Limits", key: "l", load: () => import("./pages/limits.js") },
  { pattern: "/doctor", name: "Doctor", key: "k", load: () => import("./pages/doctor.js") },
  { pattern: "/settings", name: "Settings", key: "t", load: () => import("./pages/settings.js") },
];
