import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  providers: {
    ...first.providers,
    intro:
      "Verbinde deine eigenen Modellserver mit deinen eigenen API-Schlüsseln. Ihre Nutzung " +
      "ist hier kostenlos.",
    none: "Noch keine Anbieter",
    noneText:
      "Verbinde jeden OpenAI-kompatiblen Server: von einem Anbieter oder auf deinem eigenen Computer.",
    notAllowed: "Der Betreiber dieses Dienstes erlaubt keine eigenen Modellserver und Tool-Server.",
    add: "Anbieter hinzufügen",
    addAction: "Hinzufügen",
    connectTitle: (program) => `${program} verbinden`,
    connectSteps: {
      ollama: [
        "Installiere Ollama (ollama.com) auf dem Computer, auf dem dieser Dienst läuft.",
        "Lade ein Modell herunter. Gib dazu in einem Terminal ein:",
        "Seine Modelle erscheinen in der Modellauswahl. Das kann eine Minute dauern.",
      ],
      lmstudio: [
        "Installiere LM Studio (lmstudio.ai) auf dem Computer, auf dem dieser Dienst läuft, " +
          "und lade ein Modell herunter.",
        "Starte den Server. Gib dazu in einem Terminal ein:",
        "Seine Modelle erscheinen in der Modellauswahl. Das kann eine Minute dauern.",
      ],
    },
    elsewhere: "Er läuft auf einem anderen Computer",
    checkAgain: "Erneut prüfen",
    notFound: (program) => `Keine Modelle von ${program} gefunden.`,
    found: (program, n) => `Mit ${program} verbunden: ${count(n, "Modell", "Modelle")} gefunden.`,
    added: (name) => `${name} wurde hinzugefügt`,
    name: "Name",
    nameHint: "Kleinbuchstaben, Ziffern, - und _. Modelle heißen dann name/modell.",
    baseUrl: "Basis-URL",
    baseUrlHint: "Die Adresse der API, meist mit /v1 am Ende.",
    format: "Format",
    formatHint: "Der Test eines Anbieters zeigt, welche Formate er beantwortet.",
    formats: { chat: "Chat Completions", responses: "Responses", messages: "Messages" },
    answers: (formats) => `Beantwortet ${formats.join(", ")}.`,
    apiKey: "API-Schlüssel",
    apiKeyHint:
      "Leer lassen, wenn der Server keinen braucht. Der Schlüssel wird verschlüsselt " +
      "gespeichert und nie wieder angezeigt.",
    keyStays: (hint) => `Leer lassen, um den gespeicherten Schlüssel zu behalten (${hint}).`,
    keyDropped: "Die URL wurde geändert. Ohne neuen Schlüssel wird der gespeicherte gelöscht.",
    keyEnding: (hint) => `Schlüssel ${hint}`,
    withKey: "mit Schlüssel",
    noKey: "ohne Schlüssel",
    withoutKey: "Gespeicherten Schlüssel entfernen",
    models: "Modelle",
    modelsHint:
      "Ein Modell pro Zeile. Leer lassen für alle Modelle. " +
      "Schreibe „image“, „speech“ oder „transcription“ hinter ein Modell dieser Art.",
    allModels: "alle Modelle",
    narrowed: (n) => count(n, "Modell", "Modelle"),
    test: "Testen",
    works: (n) => `Verbunden: ${count(n, "Modell", "Modelle")} gefunden.`,
    worksEmpty: "Verbunden, aber der Server nennt keine Modelle.",
    andMore: (n) => ` und ${n} weitere`,
    actions: (name) => `Aktionen für ${name}`,
    edit: "Bearbeiten",
    editTitle: (name) => `${name} bearbeiten`,
    deleteTitle: "Diesen Anbieter löschen?",
    deleteText: (name) =>
      `Die Modelle von „${name}“ und der gespeicherte Schlüssel werden gelöscht. Das kann ` +
      "nicht rückgängig gemacht werden.",
    deleted: (name) => `${name} wurde gelöscht`,
  },
};
