import { count } from "../locale.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  settings: {
    since: "Membre depuis",
    unverified:
      "Votre adresse e-mail n’est pas vérifiée. Consultez votre boîte de réception ou renvoyez le lien.",
    noMail:
      "Votre adresse e-mail n’est pas vérifiée, et ce service ne peut pas envoyer d’e-mails. " +
      "Demandez à l’opérateur un lien pour réinitialiser votre mot de passe.",
    sendMail: "Renvoyer le lien",
    chat: "Chat",
    defaultModel: "Modèle par défaut",
    defaultModelHint: "Utilisé lorsqu’un chat ou une requête n’indique aucun modèle.",
    operatorsModel: "Choix du service",
    memory: "Mémoire",
    sharesText: "Voyez quelles conversations vous partagez par lien, et désactivez des liens.",
    memoryText: "Voyez ce dont les chats peuvent se souvenir, et faites oublier des messages.",
    titles: "Titres des nouveaux chats",
    titlesHint: "Le modèle du chat les écrit, à son prix. Sinon, les premiers mots servent de titre.",
    titleChoices: {
      free: "Par les modèles gratuits",
      always: "Par tous les modèles",
      never: "Les premiers mots",
    },
    memoryHint:
      "Les chats peuvent utiliser des passages de vos conversations précédentes. La réponse " +
      "indique lesquels.",
    instructions: "Instructions personnalisées",
    saveInstructions: "Enregistrer les instructions",
    instructionsHint:
      "Envoyées avec chaque chat : ce que les modèles doivent savoir de vous, et comment ils " +
      "doivent répondre.",
    look: "Apparence",
    languageHint: "Pour cette application et pour les e-mails.",
    verificationSent: "Un lien de vérification vient d’être envoyé à votre adresse e-mail.",
    signIn: "Connexion",
    changeEmail: "Changer d’adresse",
    newEmail: "Nouvelle adresse e-mail",
    newEmailHint: "Nous enverrons un lien à cette adresse. Ouvrez-le pour confirmer le changement.",
    noMailToChange:
      "Ce service ne peut pas envoyer d’e-mails. Demandez à l’opérateur de changer votre adresse.",
    emailSent: (email) => `Nous avons envoyé un lien à ${email}. Ouvrez-le pour confirmer le changement.`,
    hasPassword: "Défini",
    noPassword: "Non défini. Vous vous connectez avec un fournisseur d’identité.",
    changePassword: "Changer le mot de passe",
    setPassword: "Définir un mot de passe",
    currentPassword: "Mot de passe actuel",
    newPassword: "Nouveau mot de passe",
    passwordChanged: "Votre mot de passe a été modifié.",
    identities: "Fournisseurs d’identité",
    noIdentities: "Aucun n’est associé.",
    link: (provider) => `Associer ${provider}`,
    unlink: "Dissocier",
    unlinkTitle: "Dissocier ce moyen de connexion ?",
    unlinkText: (provider) => `Vous pourrez associer ${provider} à nouveau plus tard.`,
    data: "Vos données",
    exportText:
      "Téléchargez une archive de toutes vos données : conversations, artefacts, exécutions, " +
      "projets et opérations.",
    retention: {
      conversations_days: (n) =>
        `Les chats sont supprimés ${count(n, "jour", "jours")} après leur dernier message.`,
      runs_days: (n) =>
        `Les exécutions d’agents sont supprimées ${count(n, "jour", "jours")} après leur fin.`,
      files_days: (n) =>
        `Les fichiers sont supprimés ${count(n, "jour", "jours")} après leur dernière modification.`,
    },
    exportAction: "Exporter les données",
    tools: "Outils",
    toolsText: "Connectez des serveurs MCP. Vos chats et vos agents peuvent utiliser leurs outils.",
    importText:
      "Importez des chats de ChatGPT, Claude, Open WebUI, LibreChat ou d’un autre serveur comme celui-ci.",
    exporting: (size) => `${size} jusqu’à présent…`,
    end: "Supprimer le compte",
    endText: "Supprimez définitivement vos conversations, artefacts, clés et fournisseurs.",
    endAction: "Supprimer le compte",
  },
};
