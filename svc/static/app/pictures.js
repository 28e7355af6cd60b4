// Images in a message. Each is an artifact, and the message's content refers to it (content.js). The model
// receives the image.
import { api } from "./api.js";
import { reference, split } from "./content.js";
import { limits } from "./limits.js";

const LARGEST_SIDE = 2048;
const LARGEST_BYTES = 1_500_000;
export const TYPES = ["image/png", "image/jpeg", "image/webp", "image/gif"];
const blobs = new Map(); // artifact id -> Promise<Blob>

/** Return the image of an artifact as a Blob, loaded once. */
export function pictureOf(artifactId) {
  if (!blobs.has(artifactId)) {
    const asked = api.artifacts.content(artifactId);
    blobs.set(artifactId, asked);
    asked.catch(() => blobs.delete(artifactId));
  }
  return blobs.get(artifactId);
}

/** Shrink an image: `{name, blob, url, store()}`. Rejects if it cannot be decoded. */
export async function picture(file) {
  const bitmap = await createImageBitmap(file);
  const blob = file.size > LARGEST_BYTES ? await smaller(bitmap) : file;
  let stored = null;
  const store = async () => {
    stored ??= upload(blob, file.name).catch((error) => {
      stored = null;
      throw error;
    });
    return stored;
  };
  return { name: file.name, blob, url: URL.createObjectURL(blob), store };
}

async function smaller(bitmap) {
  const scale = Math.min(1, LARGEST_SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = new OffscreenCanvas(Math.round(bitmap.width * scale), Math.round(bitmap.height * scale));
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: "image/jpeg", quality: 0.88 });
}

async function upload(blob, name) {
  const artifact = await api.artifacts.create({
    name: (name || "picture").slice(0, limits.artifact.name.maxlength),
    content_type: blob.type,
    content_base64: (await dataUrl(blob)).split(",")[1],
  });
  blobs.set(artifact.id, Promise.resolve(blob));
  return { id: artifact.id, reference: reference(artifact) };
}

/** Return a stored image as `picture` does. Rejects if it was deleted. */
export async function storedPicture({ name, id }) {
  const blob = await pictureOf(id);
  const stored = { id, reference: reference({ name, id }) };
  return { name, id, blob, url: URL.createObjectURL(blob), store: async () => stored };
}

function dataUrl(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

/** Return a message's content for the model: its text and its images. Deleted images are left out. */
export async function pictureParts(text) {
  const { images } = split(text);
  if (!images.length) return text;
  const urls = await Promise.allSettled(images.map(async ({ id }) => dataUrl(await pictureOf(id))));
  const parts = urls
    .filter((one) => one.status === "fulfilled")
    .map(({ value: url }) => ({ type: "image_url", image_url: { url } }));
  return [{ type: "text", text }, ...parts];
}
