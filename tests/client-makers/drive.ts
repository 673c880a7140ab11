// Drives a running service through the types that openapi-typescript makes of its contract (`schema.d.ts`, beside
// this file). Arguments: the service's address, a token, and a picture's path. Prints what the test compares, as JSON.

import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

declare const process: { argv: string[]; getBuiltinModule(name: "fs"): { readFileSync(path: string): Uint8Array<ArrayBuffer> } };

const [url, token, path] = process.argv.slice(2) as [string, string, string];
const picture = process.getBuiltinModule("fs").readFileSync(path);
const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });

/** The data of an answer. Throws the sentence of an error. */
function got<Data>(answer: { data?: Data; error?: { detail: string } }): Data {
    if (answer.data === undefined) throw new Error(answer.error?.detail);
    return answer.data;
}

/** A body as a form, for a contract in which files are strings. */
function form(body: object | undefined): FormData {
    const made = new FormData();
    for (const [name, value] of Object.entries(body ?? {})) {
        if (value instanceof Blob) made.append(name, value, "screenshot.png");
        else made.append(name, String(value));
    }
    return made;
}

const file = new Blob([picture]) as unknown as string;
const uploaded = got(
    await client.POST("/api/photos/upload", { body: { file, device_id: "typescript" }, bodySerializer: form }),
);
for (;;) {
    const state = got(
        await client.GET("/api/photos/{photo_id}/state", { params: { path: { photo_id: uploaded.id } } }),
    );
    if (state.status === "error") throw new Error(state.error_message ?? "");
    if (state.status === "done") break;
    await new Promise((resolve) => setTimeout(resolve, 50));
}
const listed = got(await client.GET("/api/photos", { params: { query: { device_id: "typescript" } } }));
const found = got(await client.GET("/api/search", { params: { query: { q: "library" } } }));
const answered = got(await client.POST("/api/chat/send", { body: { message: "What is due?" } }));
const seen = got(
    await client.POST("/api/chat/send-with-file", { body: { message: "And this?", file }, bodySerializer: form }),
);
const params = { path: { photo_id: uploaded.id } };
const image = got(await client.GET("/api/photos/{photo_id}/image", { params, parseAs: "arrayBuffer" }));
const thumbnail = got(await client.GET("/api/photos/{photo_id}/thumbnail", { params, parseAs: "blob" }));
const unknown = await client.GET("/api/photos/{photo_id}", { params: { path: { photo_id: 999 } } });

console.log(
    JSON.stringify({
        listed: listed.items.map((item) => item.id),
        found: found.items.map((item) => item.id),
        uploaded: uploaded.id,
        answers: [answered.message.content, seen.message.content],
        same: image.byteLength === picture.length && new Uint8Array(image).every((byte, at) => byte === picture[at]),
        thumbnail: thumbnail.type,
        refused: unknown.error?.detail,
    }),
);
