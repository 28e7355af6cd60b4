import { limits } from "../../limits.js";
import { count, number } from "../locale.js";
import { texts as first } from "./first.js";

const rates = limits.chats_per_minute;

export const texts = {
  ...first,
  wallet: {
    ...first.wallet,
    balance: "Saldo",
    available: "Disponível",
    held: (amount) => `${amount} reservados para solicitações em andamento`,
    nothingHeld: "Nada reservado",
    allowance: (left, whole, day) => `Restam ${left} de ${whole}, renova em ${day}`,
    tierHints: {
      free:
        `${rates.free} chats por minuto. Adicione US$ ${limits.least_dollars} ou mais para ter ` +
        `${rates.pro}.`,
      pro: `${rates.pro} chats por minuto e suporte`,
    },
    addFunds: "Adicionar saldo",
    testMoney: "Modo de teste: nenhum dinheiro real é cobrado.",
    spend: "Gastos",
    period: "Período",
    days: (n) => `Últimos ${n} dias`,
    by: "Por",
    series: { model: "Modelo", key: "Chave" },
    session: "App da web",
    deletedKey: "Chave excluída",
    others: "Outros",
    chartLabel: (n) =>
      `Gastos por dia nos últimos ${n} dias. Use as setas para a esquerda e para a direita ` +
      "para selecionar um dia.",
    most: (amount) => `maior dia: ${amount}`,
    noSpend: "Nenhum uso neste período.",
    onlyFree: "Somente modelos gratuitos foram usados neste período.",
    asTable: "Ver como tabela",
    day: "Dia",
    requests: "Solicitações",
    input: "Tokens de entrada",
    output: "Tokens de saída",
    cost: "Custo",
    ledger: "Extrato",
    filter: "Mostrar",
    kinds: { all: "Todos os lançamentos", credit: "Créditos", debit: "Débitos" },
    noneOfKind: "Nenhum lançamento.",
    /** What an entry is for. */
    purposes: {
      funds: () => "Saldo adicionado",
      testFunds: () => "Saldo adicionado (dinheiro de teste)",
      allowance: (month) => `Cota ${month}`,
      tokens: (model, input, output) =>
        `${model}: ${number(input)} tokens de entrada e ${number(output)} de saída`,
      cachedTokens: (model, input, cached, output) =>
        `${model}: ${number(input)} tokens de entrada (${number(cached)} em cache) e ` +
        `${number(output)} de saída`,
      images: (model, n) => `${model}: ${count(n, "imagem", "imagens")}`,
      searches: (model, n) => `${model}: ${count(n, "busca", "buscas")}`,
      speech: (model, n, seconds) =>
        `${model}: ${count(n, "token de áudio", "tokens de áudio")} (${seconds} s)`,
    },
    searching: (n) => `Não está nos últimos ${n} lançamentos. Ainda buscando…`,
    csv: "Baixar como CSV",
    saving: (n) => `${n} lançamentos…`,
    after: "depois",
    noLedger: "Nenhum lançamento ainda",
    noLedgerText: "Seus créditos e custos aparecem aqui, com precisão de um milionésimo de dólar.",
  },
  spending: {
    limit: "Limite mensal",
    limitHint: "Dólares americanos por mês. Em branco significa sem limite.",
    spent: (spent, limit) => `${spent} de ${limit} gastos neste mês`,
    none: "Você pode limitar quanto sua conta, ou uma única chave de API, gasta por mês.",
    change: "Alterar limite",
    set: "Definir um limite",
    keys: "Limites das chaves de API",
  },
};
