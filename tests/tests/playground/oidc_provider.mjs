// An OpenID Connect issuer that takes any login: node oidc_provider.mjs MODULE PORT SECRET REDIRECT_URI
const [module, port, secret, redirect] = process.argv.slice(2);
const { Provider } = await import(module);
// Nobody reads its warnings.
process.stderr.on('error', () => {});

const account = (login) => ({
  accountId: login,
  claims: () => ({ sub: login, email: `${login}@example.org`, email_verified: true }),
});
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: 'capo', client_secret: secret, redirect_uris: [redirect] }],
  claims: { email: ['email', 'email_verified'], profile: ['preferred_username'] },
  pkce: { required: () => true },
  findAccount: (_, login) => account(login),
});
provider.listen(port, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${port}`));
