// What tsc does not see: habits that hide mistakes, long functions and lines, and what would mean something else once the modules share
// one scope (web/dashboard.py links them).

import js from "@eslint/js";
import globals from "globals";

/** A module that declares `close` would give its own to every other module that means the browser's. */
const noGlobalsTaken = {
  create: (context) => ({
    "Program:exit"(program) {
      const module = context.sourceCode.getScope(program).childScopes[0];
      for (const variable of module.variables) {
        const isImport = variable.defs.some((definition) => definition.type === "ImportBinding");
        if (variable.name in globals.browser && !isImport) {
          context.report({ node: variable.identifiers[0], message: `${variable.name} is the browser's own name` });
        }
      }
    },
  }),
};

export default [
  js.configs.recommended,
  {
    files: ["**/*.js"],
    languageOptions: { ecmaVersion: 2023, sourceType: "module", globals: { ...globals.browser, PAGE_LANGUAGES: "readonly", PAGE_TEXTS: "readonly" } },
    linterOptions: { noInlineConfig: true },
    plugins: { page: { rules: { "no-globals-taken": noGlobalsTaken } } },
    rules: {
      "page/no-globals-taken": "error",
      "curly": ["error", "multi-line"],
      "max-len": ["error", { code: 140, ignoreStrings: true }],
      "max-lines-per-function": ["error", { max: 150, IIFEs: true }],
      "eqeqeq": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-restricted-syntax": [
        "error",
        { selector: "ImportExpression", message: "the page is one script" },
        { selector: "Program > VariableDeclaration > VariableDeclarator > :not(Identifier).id", message: "one name, so that linking sees it" },
      ],
      "no-script-url": "error",
      "no-throw-literal": "error",
      "no-unused-expressions": ["error", { allowShortCircuit: true, allowTernary: true }],
      "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
      "no-var": "error",
      "no-warning-comments": ["error", { terms: ["@ts-ignore", "@ts-expect-error", "@ts-nocheck"], location: "anywhere" }],
      "object-shorthand": "error",
      "one-var": ["error", "never"],
      "prefer-const": ["error", { destructuring: "all" }],
    },
  },
];
