import { limits } from "../../limits.js";
import { count, number } from "../locale.js";
import { texts as first } from "./first.js";

const rates = limits.chats_per_minute;

export const texts = {
  ...first,
  wallet: {
    ...first.wallet,
    balance: "Saldo",
    available: "Disponible",
    held: (amount) => `${amount} retenidos para solicitudes en curso`,
    nothingHeld: "Nada retenido",
    allowance: (left, whole, day) => `Quedan ${left} de ${whole}, se renueva el ${day}`,
    tierHints: {
      free:
        `${rates.free} chats por minuto. Añade ${limits.least_dollars} US$ o más para tener ` +
        `${rates.pro}.`,
      pro: `${rates.pro} chats por minuto y soporte`,
    },
    addFunds: "Añadir saldo",
    testMoney: "Modo de prueba: no se cobra dinero real.",
    spend: "Gasto",
    period: "Periodo",
    days: (n) => `Últimos ${n} días`,
    by: "Por",
    series: { model: "Modelo", key: "Clave" },
    session: "Aplicación web",
    deletedKey: "Clave eliminada",
    others: "Otros",
    chartLabel: (n) =>
      `Gasto por día en los últimos ${n} días. Usa las flechas izquierda y derecha para elegir un día.`,
    most: (amount) => `día más alto: ${amount}`,
    noSpend: "Sin uso en este periodo.",
    onlyFree: "En este periodo solo se usaron modelos gratuitos.",
    asTable: "Ver como tabla",
    day: "Día",
    requests: "Solicitudes",
    input: "Tokens de entrada",
    output: "Tokens de salida",
    cost: "Coste",
    ledger: "Movimientos",
    filter: "Mostrar",
    kinds: { all: "Todos los movimientos", credit: "Ingresos", debit: "Cargos" },
    noneOfKind: "Sin movimientos.",
    purposes: {
      funds: () => "Saldo añadido",
      testFunds: () => "Saldo añadido (dinero de prueba)",
      allowance: (month) => `Asignación ${month}`,
      tokens: (model, input, output) =>
        `${model}: ${number(input)} tokens de entrada y ${number(output)} de salida`,
      cachedTokens: (model, input, cached, output) =>
        `${model}: ${number(input)} tokens de entrada (${number(cached)} en caché) y ` +
        `${number(output)} de salida`,
      images: (model, n) => `${model}: ${count(n, "imagen", "imágenes")}`,
      searches: (model, n) => `${model}: ${count(n, "búsqueda", "búsquedas")}`,
      speech: (model, n, seconds) =>
        `${model}: ${count(n, "token de audio", "tokens de audio")} (${seconds} s)`,
    },
    searching: (n) => `No está en los últimos ${n} movimientos. Se sigue buscando…`,
    csv: "Descargar como CSV",
    saving: (n) => `${n} movimientos…`,
    after: "después",
    noLedger: "Aún no hay movimientos",
    noLedgerText: "Tus ingresos y costes aparecerán aquí, exactos hasta la millonésima de dólar.",
  },
  spending: {
    limit: "Límite mensual",
    limitHint: "Dólares estadounidenses por mes natural. Vacío significa sin límite.",
    spent: (spent, limit) => `${spent} de ${limit} gastados este mes`,
    none: "Puedes limitar lo que tu cuenta, o una sola clave API, gasta en un mes.",
    change: "Cambiar límite",
    set: "Establecer un límite",
    keys: "Límites de claves API",
  },
};
