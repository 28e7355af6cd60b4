import { limits } from "../../limits.js";
import { texts as first } from "./first.js";

export const texts = {
  ...first,
  signIn: {
    ...first.signIn,
    lead: "Votre propre plateforme d’IA, sur votre propre machine.",
    about:
      "Chat, agents, images et audio avec n’importe quel serveur de modèles, dans un seul " +
      "compte. Vous voyez le coût de chaque action, et l’API est compatible avec OpenAI.",
    points: [
      ["chat", "Discutez avec tous vos modèles et conservez vos conversations."],
      ["agents", "Donnez un objectif à un agent et suivez chaque étape."],
      ["key", "Utilisez le même compte depuis curl, Python ou JavaScript."],
    ],
    signUp: "Créez votre compte",
    toSignIn: "Vous avez déjà un compte ? Se connecter",
    toSignUp: "Créer un compte",
    signUpAction: "Créer le compte",
    show: "Afficher le mot de passe",
    hide: "Masquer le mot de passe",
    forgot: "Mot de passe oublié ?",
    forgotTitle: "Réinitialiser votre mot de passe",
    forgotText: "Nous vous enverrons un lien par e-mail. Il est valable une heure.",
    forgotAction: "Envoyer le lien",
    forgotDone:
      "Si un compte existe avec cette adresse e-mail, nous avons envoyé un lien. Rien reçu ? " +
      "Demandez un lien à l’opérateur de ce service.",
    forgotNoMail: "Ce service n’envoie pas d’e-mails. Demandez un lien à son opérateur.",
    back: "Retour à la connexion",
    closed: "Les inscriptions sont fermées. Demandez un compte à l’opérateur.",
    again: "Votre session a expiré",
    againText: (email) =>
      `Les sessions durent ${limits.session_hours} heures. Saisissez le mot de passe de ` +
      `${email} pour continuer. Votre travail est enregistré.`,
    againAction: "Continuer",
    otherAccount: "Utiliser un autre compte",
    linked: "Associé. Vous pouvez maintenant aussi vous connecter de cette façon.",
    trouble: {
      access_denied: "La connexion a été annulée, ou refusée par le fournisseur.",
      domain_not_allowed:
        "Les inscriptions sont fermées pour le domaine de votre adresse e-mail. Demandez un " +
        "compte à l’opérateur.",
      email_missing: "Le fournisseur n’a pas transmis votre adresse e-mail. Un compte en nécessite une.",
      email_not_verified:
        "Le fournisseur n’indique pas que votre adresse e-mail est vérifiée. Prévenez " +
        "l’opérateur, ou connectez-vous comme avant et associez ce moyen de connexion dans " +
        "vos paramètres.",
      email_taken:
        "Un compte existe déjà avec cette adresse e-mail. Connectez-vous comme avant, ou " +
        "réinitialisez votre mot de passe. Associez ensuite ce moyen de connexion dans vos " +
        "paramètres.",
      identity_taken: "Cette identité est associée à un autre compte.",
      invalid_token: "Cette connexion a expiré ou a commencé dans un autre navigateur. Réessayez.",
      shutting_down: "Le service redémarre. Réessayez dans un instant.",
      signup_closed:
        "Les inscriptions sont fermées et vous n’avez pas de compte. Demandez-en un à l’opérateur.",
      storage_unavailable:
        "Le service ne peut pas enregistrer de données pour le moment. Réessayez plus tard.",
      other: "Le fournisseur est injoignable. Réessayez dans un instant.",
    },
  },
};
