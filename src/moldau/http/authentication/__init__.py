"""Authentication of HTTP requests: basic credentials, bearer tokens, certificates of clients.

| setting | default | meaning |
|---|---|---|
| `authentication.method` | NONE | NONE, BASIC, BEARER, or both separated by a comma |
| `authentication.realm` | | realm of BASIC, and the section of the JAAS file that names the file of users |
| `authentication.roles` | `*` | roles of which a user needs one, separated by commas; `*`: any user |
| `authentication.skip.paths` | | paths that need no login, separated by commas |
| `authentication.users.file` | | file with lines `user: password,role,…`, without a JAAS file |
| `authentication.user.NAME` | | password and roles of one user |
| `oauthbearer.jwks.endpoint.url` | | keys that sign bearer tokens |
| `oauthbearer.expected.audience`, `oauthbearer.expected.issuer` | | what tokens must name |
"""
