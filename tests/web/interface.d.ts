/** The object `api` of svc/static/app/api.js; schemas.d.ts has the types of bodies and answers. */
type Values = Record<string, string | number | null | undefined>;
type Options = { headers?: Record<string, string>; signal?: AbortSignal; keepalive?: boolean };
type Transfer = {
  onProgress?: (bytes: number, allBytes: number | null) => void;
  type?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
};
type Page<T> = { data: T[]; has_more: boolean };
type Crud<T, New, Changes> = {
  list(values?: Values): Promise<Page<T>>;
  create(body: New): Promise<T>;
  show(id: string): Promise<T>;
  change(id: string, body: Changes): Promise<T>;
  remove(id: string, options?: Options): Promise<null>;
};

interface Interface {
  auth: {
    signUp(body: Api.SignUpRequest): Promise<Api.Session>;
    signIn(body: Api.LogInRequest): Promise<Api.Session>;
    providers(): Promise<Api.IdentityProvider[]>;
    changeCode(code: string): Promise<Api.Session>;
    resetPassword(email: string): Promise<Api.PasswordResetAccepted>;
    verifyEmail(token: string): Promise<null>;
  };
  user: {
    me(): Promise<Api.User>;
    change(body: Api.UpdateUserRequest): Promise<Api.User>;
    remove(body: Api.DeleteUserRequest): Promise<null>;
    settings(): Promise<Api.Settings>;
    changeSettings(body: Api.UpdateSettingsRequest): Promise<Api.Settings>;
    changePassword(body: Api.ChangePasswordRequest): Promise<null>;
    identities(): Promise<Api.IdentityList>;
    linkIdentity(provider: string): Promise<Api.LinkingBegun>;
    unlinkIdentity(id: string): Promise<null>;
    verifyEmail(): Promise<Api.VerificationAccepted>;
    exportAll(options?: Transfer): Promise<Blob>;
  };
  memory: {
    list(values?: Values): Promise<Api.MemoryList>;
    forget(id: string): Promise<null>;
    remember(id: string): Promise<Api.Memory>;
  };
  imports: {
    list(values?: Values): Promise<Api.ImportList>;
    show(id: string): Promise<Api.ImportReport>;
    create(file: Blob, options?: Transfer): Promise<Api.ImportReport>;
    undo(id: string): Promise<null>;
  };
  keys: {
    list(): Promise<Api.ApiKey[]>;
    create(body: Api.CreateApiKeyRequest): Promise<Api.NewApiKey>;
    change(id: string, body: Api.UpdateApiKeyRequest): Promise<Api.ApiKey>;
    remove(id: string): Promise<null>;
  };
  providers: Crud<Api.Provider, Api.CreateProviderRequest, Api.UpdateProviderRequest> & {
    test(id: string): Promise<Api.ProviderTest>;
  };
  toolServers: Crud<Api.ToolServer, Api.CreateToolServerRequest, Api.UpdateToolServerRequest> & {
    test(id: string): Promise<Api.ToolServerTest>;
  };
  tools: { list(): Promise<Api.Tool[]> };
  projects: Crud<Api.Project, Api.CreateProjectRequest, Api.UpdateProjectRequest> & {
    files(id: string): Promise<Api.ProjectFile[]>;
    addFile(id: string, artifactId: string): Promise<Api.ProjectFile>;
    removeFile(id: string, artifactId: string): Promise<null>;
  };
  conversations: Crud<Api.Conversation, Api.ConversationRequest, Api.ConversationRequest> & {
    exported(id: string): Promise<Blob>;
    share(id: string, body: Api.CreateShareRequest): Promise<Api.NewShare>;
    summarize(id: string): Promise<unknown>;
    fork(id: string, messageId: string): Promise<Api.Conversation>;
    versions(id: string, messageId: string, values?: Values): Promise<Page<Api.Message>>;
    messages(id: string, values?: Values, options?: Options): Promise<Page<Api.Message>>;
    addMessage(id: string, body: Api.CreateMessageRequest): Promise<Api.Message>;
    stop(id: string): Promise<unknown>;
    approve(
      id: string,
      calls: Record<string, boolean>,
      options: Options & { onOpen: () => void },
    ): AsyncGenerator<any>;
    stream(id: string, options?: Options): AsyncGenerator<any>;
  };
  shares: { list(values?: Values): Promise<Page<Api.Share>>; remove(id: string): Promise<null> };
  shared: { show(token: string): Promise<Api.SharedConversation>; picture(token: string, id: string): string };
  artifacts: Crud<Api.Artifact, Api.CreateArtifactRequest, Api.UpdateArtifactRequest> & {
    content(id: string, options?: Transfer): Promise<Blob>;
    passages(id: string, values?: Values): Promise<Api.PassageList>;
    text(id: string, options?: Options): Promise<{ text: string; truncated: boolean }>;
    replaceContent(id: string, blob: Blob, options?: Transfer & { type?: string }): Promise<Api.Artifact>;
  };
  agents: {
    run(body: Api.RunRequest, options?: Options): AsyncGenerator<any>;
    list(values?: Values): Promise<Page<Api.Run>>;
    show(id: string): Promise<Api.RunWithEvents>;
    stop(id: string): Promise<unknown>;
  };
  models: { show(id: string): Promise<Api.Model>; list(): Promise<Api.Model[]> };
  media: {
    draw(body: Api.ImageRequest, options?: Options): Promise<Api.ImageList>;
    speak(body: Api.AudioRequest, options?: Options): Promise<{ blob: Blob; seconds: number; truncated: boolean }>;
    transcribe(form: FormData, options?: Options): Promise<Api.Transcript>;
  };
  billing: {
    account(): Promise<Api.BillingAccount>;
    ledger(values?: Values): Promise<Page<Api.LedgerEntry>>;
    usage(values?: Values): Promise<Page<Api.UsageDay & Partial<Api.UsageDayOfKey>>>;
  };
  support: {
    list(values?: Values): Promise<Page<Api.SupportConversation>>;
    create(body: Api.CreateSupportRequest): Promise<Api.SupportConversationWithMessages>;
    show(id: string): Promise<Api.SupportConversationWithMessages>;
    addMessage(id: string, content: string): Promise<Api.SupportMessage>;
    close(id: string): Promise<Api.SupportConversation>;
  };
  chat(
    body: Omit<Api.ChatCompletionRequest, "stream">,
    options: Options & { onOpen?: (headers: Headers) => void },
  ): AsyncGenerator<any>;
}

/** The object `administration` of svc/static/app/admin/api.js. */
interface Administration {
  users: {
    list(values: Record<string, any>): Promise<Page<Api.AdministeredUser>>;
    invite(body: Api.CreateUserRequest): Promise<Api.Invitation>;
    show(id: string): Promise<Api.AdministeredUser>;
    change(id: string, body: Api.ChangeUserRequest): Promise<Api.AdministeredUser>;
    resetLink(id: string): Promise<Api.Invitation>;
    remove(id: string): Promise<null>;
    book(id: string, kind: "credits" | "debits", body: Api.BookingRequest): Promise<Api.LedgerEntry>;
  };
  keys: {
    list(id: string, values?: Values): Promise<Page<Api.ApiKey>>;
    remove(id: string, keyId: string): Promise<null>;
    removeAll(id: string): Promise<null>;
  };
  usage(values: Values): Promise<Api.Spending>;
  signIns(values?: Values): Promise<Page<Api.SignIn>>;
  csv(list: "usage" | "audit" | "sign-ins", values: Record<string, string>): Promise<Blob>;
  support: {
    list(values?: Values): Promise<Page<Api.InboxConversation>>;
    show(id: string): Promise<Api.InboxConversationWithMessages>;
    addMessage(id: string, content: string): Promise<Api.SupportMessage>;
    close(id: string): Promise<Api.InboxConversationWithMessages>;
  };
  status(): Promise<Api.Status>;
  models: {
    list(): Promise<Api.LocalModels>;
    add(body: Api.AddModelRequest): Promise<Api.LocalModels>;
    remove(name: string): Promise<null>;
  };
  tools(month: string): Promise<Api.AdministeredToolList>;
  catalog(): Promise<Api.Catalog>;
  reload(): Promise<Api.Reloaded>;
  backup(): Promise<Api.Backups>;
  audit(values?: Values): Promise<Page<Api.AuditEntry>>;
}
